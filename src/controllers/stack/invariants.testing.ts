import assert from 'node:assert/strict'
import { type ApprovalPolicy, annotations, isEnded, isMutating, phaseOf, type Run, reportedState, type Stack } from '../../api/index.ts'
import type { StackDecision } from './decision.ts'
import { formatConditions } from './format-conditions.testing.ts'
import { isLost } from './run-status.ts'

type Creation = {
  /** As the decision has seen it. */
  readonly stack: Stack
  readonly run: NonNullable<StackDecision['createRun']>
  /** The other Runs of the Stack that exist. */
  readonly runs: readonly Run[]
  readonly hasFinalizer: boolean
  /** Names of all Runs that ever had a worker. */
  readonly assignedRuns: ReadonlySet<string>
  readonly approvalPolicy: ApprovalPolicy | undefined
  readonly nowMs: number
}

/** What holds whenever a Run is created (invariants 1, 3 and 11). @throws {AssertionError} */
export function checkCreation({ stack, run: { name, spec }, runs, hasFinalizer, assignedRuns, approvalPolicy, nowMs }: Creation): void {
  const active = runs.find(run => !isEnded(run))
  assert.ok(!active, `invariant 1: ${name} is created while ${active?.metadata.name} is active`)
  assert.ok(hasFinalizer, `${name} is created before the finalizer is set`)
  // The name of a Run that was deleted before it had a worker may be used again.
  assert.ok(!assignedRuns.has(name), `invariant 3: ${name} is created after a worker had a Run of this name`)
  const epochs = runs.map(run => run.spec.epoch)
  assert.ok(
    epochs.every(epoch => epoch < spec.epoch),
    `invariant 3: the epoch of ${name} is not the highest of ${epochs}`,
  )
  assert.ok(!stack.spec.suspend, `${name} is created while the Stack is suspended`)
  if (!isMutating(spec.type) || !(stack.spec.approval === 'Manual' || approvalPolicy)) return
  assert.equal(stack.metadata.annotations?.[annotations.approvedPlan], spec.approvedPlan?.digest, `${name} applies without approval`)
  assert.ok(spec.approvedPlan)
  const { runName: planned, expiresAt } = spec.approvedPlan
  assert.ok(Date.parse(expiresAt ?? '') > nowMs, `${name} applies after the approval has expired`)
  const { rejection } = stack.status ?? {}
  assert.ok(!rejection || rejection.runName !== planned, `${name} applies a plan that was rejected`)
  // Once: only a Run that was lost, or that no worker had, may be followed by another one with the same approval.
  const used = runs.find(
    run => run.spec.approvedPlan?.runName === planned && ['Succeeded', 'Failed'].includes(phaseOf(run)) && !isLost(run),
  )
  assert.ok(!used, `${name} applies with the approval that ${used?.metadata.name} used`)
}

/** What holds for every status that is written: one documented state, and only a complete Apply is recorded as applied. @throws {AssertionError} */
export function checkStatus(stack: Stack, runs: readonly Run[]): void {
  const { metadata, status } = stack
  const applied = runs.find(run => run.metadata.name === status?.applied?.runName)
  assert.equal(applied?.spec.options?.targets, undefined, `${applied?.metadata.name} applied only its targets, and is recorded as applied`)
  assert.ok(reportedState(stack), `${metadata.name} reports conditions that exclude each other: ${formatConditions(status?.conditions)}`)
}
