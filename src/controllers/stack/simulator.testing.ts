import assert from 'node:assert/strict'
import {
  type ApprovalPolicy,
  annotations,
  formatRunOptions,
  isEnded,
  phaseOf,
  type Run,
  type RunPhase,
  type RunStatus,
  recordedEpoch,
  type Stack,
  type StackSpec,
} from '../../api/index.ts'
import { equalJson, formatDuration, rfc3339, type StatusCause } from '../../kubernetes/object/index.ts'
import { decideStack } from './decide-stack.ts'
import type { RevisionError, StackDecision, StackInput } from './decision.ts'
import { dependencyNames, findCycle } from './dependencies.ts'
import { formatConditions } from './format-conditions.testing.ts'
import { checkCreation, checkStatus } from './invariants.testing.ts'
import { ownRuns } from './run-status.ts'
import { specErrors } from './spec-errors.ts'

/** Where the next reconcile crashes: after the Run is created, or after the status is written. */
export type CrashPoint = 'afterRun' | 'afterStatus'

/** What the shell knows of a Stack besides the objects. */
type StackEnvironment = {
  revision: StackInput['revision']
  inputErrors: StatusCause[]
  secret: string
  state: StackInput['state']
  requeueAtMs: number | undefined
}

/**
 * Stacks and Runs on virtual time, driven by the real decider, for scenario and property tests. It acts as the shell does
 * (creates the Run, writes the status, deletes, requeues) and checks the invariants after every decision. The input is frozen.
 */
export class Simulator {
  readonly #startMs = Date.parse('2026-06-01T10:00:00Z')
  readonly #stacks = new Map<string, Stack>()
  readonly #environments = new Map<string, StackEnvironment>()
  #createdRuns = 0
  /** Names of all Runs that ever had a worker. */
  readonly #assignedRuns = new Set<string>()
  /** Names of Runs that are deleted and may still have the finalizer of dispatch. */
  readonly #deletedRuns = new Set<string>()
  #runs: Run[] = []
  #nowMs = this.#startMs
  #uids = 0
  #lines: string[] = []
  jitter = 0.5
  crash: CrashPoint | undefined
  /** Of all Stacks. */
  mayReportQueued = true
  /** While true, no reconcile happens. */
  isPaused = false
  /** Of the namespace, that is of all Stacks. */
  approvalPolicy: ApprovalPolicy | undefined
  approvalTimeoutMs = 24 * 3_600_000

  get nowMs(): number {
    return this.#nowMs
  }

  /** Returns the lines logged since the last call. */
  drainLines(): string[] {
    return this.#lines.splice(0)
  }

  stacks(): Stack[] {
    return [...this.#stacks.values()]
  }

  runsOf(name: string): Run[] {
    const stack = this.#stacks.get(name)
    return stack ? ownRuns(this.#runs, stack.metadata.uid) : []
  }

  activeRun(name: string): Run | undefined {
    return this.runsOf(name).find(run => !isEnded(run))
  }

  /** Creates a Stack, or changes the spec of an existing one. */
  put(name: string, change: Partial<StackSpec>): void {
    const old = this.#stacks.get(name)
    if (old) {
      const spec = { ...old.spec, ...change }
      for (const key of Object.keys(spec) as (keyof StackSpec)[]) if (spec[key] === undefined) delete spec[key]
      this.#replace({ ...old, spec, metadata: { ...old.metadata, generation: (old.metadata.generation ?? 1) + 1 } })
    } else {
      const number = String(++this.#uids).padStart(5, '0')
      this.#stacks.set(name, {
        apiVersion: 'oarlock.dev/v1alpha1',
        kind: 'Stack',
        metadata: {
          name,
          namespace: 'default',
          uid: `${number}-0000`,
          resourceVersion: '1',
          generation: 1,
          creationTimestamp: rfc3339(this.#nowMs),
        },
        spec: { engine: 'terraform', source: { inline: { files: { 'main.tf': '' } } }, ...change },
      })
      this.#environments.set(name, { revision: 'r1', inputErrors: [], secret: '', state: undefined, requeueAtMs: undefined })
    }
    this.settle()
  }

  annotate(name: string, values: Partial<Record<keyof typeof annotations, string>>): void {
    const stack = this.#getStack(name)
    const given = Object.fromEntries(Object.entries(values).map(([key, value]) => [annotations[key as keyof typeof annotations], value]))
    this.#replace({ ...stack, metadata: { ...stack.metadata, annotations: { ...stack.metadata.annotations, ...given } } })
    this.settle()
  }

  /** What the stores have of the state of a Stack; every Run is checked. */
  setState(name: string, state: StackInput['state']): void {
    this.#environments.get(name)!.state = state
    this.settle()
  }

  /** Acts as the restore of a backup that was created now. */
  restore(name: string, minRunNumber: number): void {
    const stack = this.#getStack(name)
    this.#replace({ ...stack, status: { ...stack.status, minRunNumber, restored: { at: rfc3339(this.#nowMs) } } })
    this.settle()
  }

  setRevision(name: string, revision: string | undefined | { error: RevisionError }): void {
    const environment = this.#environments.get(name)
    if (environment) environment.revision = revision
    this.settle()
  }

  setSecret(name: string, secret: string, inputErrors: StatusCause[]): void {
    Object.assign(this.#environments.get(name)!, { secret, inputErrors })
    this.settle()
  }

  delete(name: string): void {
    const stack = this.#getStack(name)
    if (!stack.metadata.finalizers?.length) this.#remove(name)
    else {
      const generation = (stack.metadata.generation ?? 1) + 1
      this.#replace({ ...stack, metadata: { ...stack.metadata, generation, deletionTimestamp: rfc3339(this.#nowMs) } })
    }
    this.settle()
  }

  /** Acts as dispatch: the active Run of the Stack gets a worker, and its status is not written. */
  assign(name: string): void {
    this.#replaceActiveRun(name, run => ({ ...run, spec: this.#assignedSpec(run) }))
  }

  /** Acts as dispatch and the worker: the active Run of the Stack changes to `phase`. */
  report(name: string, phase: RunPhase, status: Omit<Partial<RunStatus>, 'phase'> = {}): void {
    const isEnd = ['Succeeded', 'Failed', 'Canceled', 'Lost'].includes(phase)
    this.#replaceActiveRun(name, run => ({
      ...run,
      spec: phase === 'Queued' ? run.spec : this.#assignedSpec(run),
      status: { ...run.status, ...status, phase, ...(isEnd && { finishedAt: rfc3339(this.#nowMs) }) },
    }))
  }

  #assignedSpec({ spec }: Run): Run['spec'] {
    return spec.workerName === undefined ? { ...spec, workerName: 'w1', assignedAt: rfc3339(this.#nowMs) } : spec
  }

  #replaceActiveRun(name: string, change: (run: Run) => Run): void {
    const run = this.activeRun(name)
    assert.ok(run, `${name} has no active Run`)
    const next = change(run)
    if (next.spec.workerName !== undefined) this.#assignedRuns.add(run.metadata.name)
    this.#runs = this.#runs.map(other => (other === run ? next : other))
    this.settle()
  }

  /** Deletes a Run that has ended or that has no worker. The finalizer of dispatch keeps one that had a worker until its end is recorded. */
  deleteRun(runName: string): void {
    const run = this.#runs.find(({ metadata }) => metadata.name === runName)
    if (run?.spec.workerName === undefined) this.#runs = this.#runs.filter(other => other !== run)
    else this.#deletedRuns.add(runName)
    this.settle()
    this.#removeDeletedRuns()
    this.settle()
  }

  #removeDeletedRuns(): void {
    const statuses = new Map(this.stacks().map(({ metadata, status }) => [metadata.uid, status]))
    this.#runs = this.#runs.filter(
      run => !this.#deletedRuns.has(run.metadata.name) || run.spec.epoch > recordedEpoch(statuses.get(run.spec.stackRef.uid)),
    )
  }

  /** Advances the clock, with the reconciles that were requeued for a time in between. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms
    for (;;) {
      const due = [...this.#environments.values()].map(({ requeueAtMs }) => requeueAtMs ?? Infinity)
      const nextMs = Math.min(endMs, ...due)
      this.#nowMs = Math.max(this.#nowMs, nextMs)
      if (nextMs >= endMs || this.isPaused) break
      this.settle()
    }
    this.#nowMs = endMs
    this.settle()
  }

  /** Reconciles every Stack until nothing changes. */
  settle(): void {
    if (this.isPaused) return
    for (let pass = 0; ; pass++) {
      assert.ok(pass < 50, `the Stacks do not settle:\n${this.#lines.slice(-10).join('\n')}`)
      let isChanged = false
      for (const name of [...this.#stacks.keys()]) isChanged = this.#reconcile(name) || isChanged
      if (!isChanged) return
    }
  }

  #reconcile(name: string): boolean {
    const stack = this.#stacks.get(name)
    if (!stack) return false
    const environment = this.#environments.get(name)!
    const decision = decideStack(frozen(this.#input(name)))
    environment.requeueAtMs = decision.requeueAfterMs === undefined ? undefined : this.#nowMs + decision.requeueAfterMs
    if (!isAction(decision) && equalJson(decision.status, stack.status ?? {})) return false
    this.#execute(name, stack, decision)
    this.#removeDeletedRuns()
    return true
  }

  #input(name: string): StackInput {
    const stack = this.#getStack(name)
    const { revision, inputErrors, secret, state } = this.#environments.get(name)!
    const dependencies = dependencyNames(stack.spec).map(other => ({ name: other, stack: this.#stacks.get(other) }))
    const outputs = (stack.spec.variablesFrom ?? []).map(({ stackRef }) => this.#stacks.get(stackRef?.name ?? '')?.status?.outputsDigest)
    return {
      stack,
      runs: [...this.#runs],
      dependencies,
      dependents: this.stacks()
        .filter(other => dependencyNames(other.spec).includes(name))
        .map(({ metadata }) => metadata.name),
      cycle: findCycle(name, other => this.#stacks.get(other)?.spec),
      specErrors: specErrors(stack.spec),
      inputErrors,
      revision,
      state,
      inputsDigest: [secret, ...outputs.map(digest => digest ?? '')].join('|'),
      nowMs: this.#nowMs,
      approvalPolicy: this.approvalPolicy,
      approvalTimeoutMs: this.approvalTimeoutMs,
      jitter: this.jitter,
      mayReportQueued: this.mayReportQueued,
    }
  }

  #execute(name: string, stack: Stack, decision: StackDecision): void {
    const { crash } = this
    for (const { type, reason, message } of decision.events) this.#log(name, `${type === 'Warning' ? '!' : '·'} ${reason}: ${message}`)
    if (decision.addFinalizer) this.#patchMetadata(name, { finalizers: [...(stack.metadata.finalizers ?? []), 'oarlock.dev/finalizer'] })
    if (decision.supersedeRun) this.#supersede(decision.supersedeRun, name)
    if (decision.createRun) this.#create(name, stack, decision.createRun)
    if (decision.createRun && crash === 'afterRun') {
      this.#logCrash(name)
      return
    }
    if (decision.cancelRun) this.#cancel(decision.cancelRun, name)
    if (!equalJson(decision.status, stack.status ?? {})) {
      const before = formatConditions(stack.status?.conditions)
      this.#replace({ ...this.#getStack(name), status: decision.status })
      checkStatus(this.#getStack(name), this.#runs)
      const after = formatConditions(decision.status.conditions)
      if (after !== before) this.#log(name, after)
    }
    if (crash === 'afterStatus') {
      this.#logCrash(name)
      return
    }
    for (const { name: run } of decision.deleteRuns) {
      assert.ok(isEnded(this.#runs.find(({ metadata }) => metadata.name === run)!), `${run} is deleted before it ended`)
      this.#log(name, `delete Run ${run}`)
      this.#runs = this.#runs.filter(({ metadata }) => metadata.name !== run)
    }
    if (decision.removeFinalizer) {
      assert.ok(!this.activeRun(name), `the finalizer of ${name} is removed while a Run is active`)
      this.#log(name, 'finalizer removed')
      this.#remove(name)
    } else this.#checkStable(name)
  }

  #create(name: string, stack: Stack, { name: runName, spec }: NonNullable<StackDecision['createRun']>): void {
    checkCreation({
      stack,
      run: { name: runName, spec },
      runs: ownRuns(this.#runs, stack.metadata.uid),
      hasFinalizer: Boolean(this.#getStack(name).metadata.finalizers?.length),
      assignedRuns: this.#assignedRuns,
      approvalPolicy: this.approvalPolicy,
      nowMs: this.#nowMs,
    })
    this.#createdRuns++
    const { revision } = this.#environments.get(name) ?? {}
    const isPresent = spec.revision === revision && equalJson(spec.stack.variables, this.#stacks.get(name)?.spec.variables)
    const isOfDestruction = spec.type === 'Destroy' || spec.planMode === 'Destroy'
    const sourceOf = () => `, ${spec.configuration ?? 'Present'} ${spec.revision} ${JSON.stringify(spec.stack.variables ?? {})}`
    const used = isOfDestruction && !isPresent ? sourceOf() : ''
    const kind = [spec.type, spec.planMode, formatRunOptions(spec.options)].filter(Boolean).join(' ')
    this.#log(name, `create Run ${runName} (${kind}): ${spec.reason}${used}`)
    this.#runs.push({
      apiVersion: 'oarlock.dev/v1alpha1',
      kind: 'Run',
      metadata: {
        name: runName,
        namespace: 'default',
        uid: `run-${this.#createdRuns}`,
        resourceVersion: '1',
        creationTimestamp: rfc3339(this.#nowMs),
      },
      spec: structuredClone(spec),
    })
  }

  #supersede({ name: runName, by }: NonNullable<StackDecision['supersedeRun']>, name: string): void {
    this.#log(name, `supersede Run ${runName}`)
    this.#runs = this.#runs.map(run => {
      if (run.metadata.name !== runName) return run
      assert.equal(run.spec.workerName, undefined, `${runName} is superseded although it has a worker`)
      return { ...run, status: { phase: 'Canceled', reason: 'Superseded', supersededBy: by, finishedAt: rfc3339(this.#nowMs) } }
    })
  }

  #cancel({ name: runName, reason }: NonNullable<StackDecision['cancelRun']>, name: string): void {
    this.#log(name, `cancel Run ${runName}${reason ? ` (${reason})` : ''}`)
    this.#runs = this.#runs.map(run => {
      if (run.metadata.name !== runName) return run
      const spec = { ...run.spec, cancel: true, ...(reason && { cancelReason: reason }) }
      // controllers/dispatch/ immediately ends a Run without a worker.
      return run.spec.workerName ? { ...run, spec } : { ...run, spec, status: { phase: 'Canceled', finishedAt: rfc3339(this.#nowMs) } }
    })
  }

  #checkStable(name: string): void {
    const repeated = decideStack(frozen(this.#input(name)))
    const now = this.#getStack(name).status ?? {}
    if (
      this.#runs.some(
        run => run.spec.cancel && isEnded(run) && now.lastRun?.name === run.metadata.name && now.lastRun.phase !== phaseOf(run),
      )
    )
      return
    if (repeated.removeFinalizer) return
    assert.deepEqual(repeated.status, now, `${name}: deciding again on its own outcome changes the status`)
    assert.ok(!isAction(repeated), `${name}: deciding again on its own outcome acts: ${JSON.stringify({ ...repeated, status: undefined })}`)
  }

  #logCrash(name: string): void {
    this.crash = undefined
    this.#log(name, 'crash')
  }

  #getStack(name: string): Stack {
    const stack = this.#stacks.get(name)
    assert.ok(stack, `Stack ${name} does not exist`)
    return stack
  }

  #replace(stack: Stack): void {
    this.#stacks.set(stack.metadata.name, stack)
  }

  #patchMetadata(name: string, patch: Partial<Stack['metadata']>): void {
    const stack = this.#getStack(name)
    this.#replace({ ...stack, metadata: { ...stack.metadata, ...patch } })
  }

  #remove(name: string): void {
    const { uid } = this.#getStack(name).metadata
    this.#stacks.delete(name)
    this.#environments.delete(name)
    this.#runs = this.#runs.filter(run => run.spec.stackRef.uid !== uid)
  }

  #log(name: string, text: string): void {
    const ms = this.#nowMs - this.#startMs
    this.#lines.push(`${ms === 0 ? '0s' : formatDuration(ms)} ${name} ${text}`)
  }
}

/** Frozen with everything in it: a decision that changes its input throws. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value))
    for (const field of Object.values(Object.freeze(value))) frozen(field)
  return value
}

function isAction(decision: StackDecision): boolean {
  const { createRun, cancelRun, deleteRuns, addFinalizer, removeFinalizer, events } = decision
  return Boolean(createRun || cancelRun || addFinalizer || removeFinalizer || deleteRuns.length || events.length)
}
