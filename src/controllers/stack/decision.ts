import type { Run, RunSpec, Stack, StackStatus } from '../../api/index.ts'
import type { StatusCause } from '../../kubernetes/object/index.ts'
import type { PlannedRun } from './choose-run.ts'
import { type StackConditions, type StackEvent, setConditions } from './conditions.ts'
import type { Dependency } from './dependencies.ts'
import { runsToDelete } from './history-limit.ts'
import type { Inputs } from './inputs.ts'
import { inputsOf } from './inputs.ts'
import { isAdHocRun } from './run-status.ts'
import type { Settings } from './settings.ts'

/** Why the revision of a source is not known. */
export type RevisionError = { readonly reason: string; readonly message: string; readonly retryable: boolean }

export type StackInput = {
  readonly stack: Stack
  /** Every Run of the Stack. Must include the one that `status.lastRun` names, if it exists: read it from the server when the cache lags. */
  readonly runs: readonly Run[]
  /** The Stacks it depends on ({@link dependencyNames}), in order. */
  readonly dependencies: readonly Dependency[]
  /** Names of the existing Stacks that depend on it. */
  readonly dependents: readonly string[]
  /** The cycle it is part of, such as `['a', 'b', 'a']`. */
  readonly cycle?: readonly string[] | undefined
  readonly specErrors: readonly StatusCause[]
  /** Secrets, keys and ConfigMaps that its variables and environment reference and that do not exist. */
  readonly inputErrors?: readonly StatusCause[]
  /** The current revision of the source; undefined while it is being resolved. */
  readonly revision: string | undefined | { readonly error: RevisionError }
  readonly inputsDigest: string
  readonly nowMs: number
  /** A constant of the Stack between 0 and 1 that spreads drift checks ({@link jitterOf}). */
  readonly jitter: number
}

export type StackDecision = {
  /** The whole next status. Equal to the present one when nothing is to be written. */
  readonly status: StackStatus
  /** To be created before the status is written: after a crash between the two, the Run is found by its number. */
  readonly createRun?: { readonly name: string; readonly spec: RunSpec }
  /** A waiting Run that `createRun` replaces: end it as Canceled, at exactly this version, before the new one is created. */
  readonly supersedeRun?: { readonly name: string; readonly resourceVersion: string; readonly by: string }
  readonly cancelRun?: { readonly name: string; readonly reason?: 'Outdated' }
  /** Ended Runs beyond the history limit, to be deleted after the status is written: it contains their results. */
  readonly deleteRuns: readonly string[]
  /** To be added before a Run is created. */
  readonly addFinalizer?: boolean
  readonly removeFinalizer?: boolean
  readonly events: readonly StackEvent[]
  /** Decide again after this time even if nothing changes. */
  readonly requeueAfterMs?: number
}

/** The input of one decision with what was derived from it. `status` is a copy that the decision updates. */
export type DecisionContext = {
  readonly input: StackInput
  /** The Stack's own, oldest first. */
  readonly runs: readonly Run[]
  readonly settings: Settings
  readonly status: StackStatus
  readonly events: readonly StackEvent[]
}

/** The conditions to report, and the Run to create, now or later, unless something blocks it. */
export type NextStep = {
  readonly conditions: StackConditions
  readonly planned?: PlannedRun
  readonly inputs?: Inputs
  /** True when `conditions` follow from earlier Runs, and not from the Stack, its dependencies or its source. */
  readonly isFromRuns?: boolean
}

export type DecisionActions = Pick<StackDecision, 'createRun' | 'supersedeRun' | 'cancelRun' | 'requeueAfterMs'>

/** Completes a decision: sets the conditions, adds their events and applies the history limit. */
export function completeDecision(
  { input, runs, status, events, settings }: DecisionContext,
  update: StackConditions,
  { createRun, supersedeRun, cancelRun, requeueAfterMs }: DecisionActions = {},
): StackDecision {
  const { stack, nowMs } = input
  const generation = stack.metadata.generation ?? 1
  const transitions = setConditions(status, update, generation, nowMs)
  status.conditions = transitions.conditions
  status.observedGeneration = generation
  return {
    status,
    ...(createRun && { createRun }),
    ...(supersedeRun && { supersedeRun }),
    ...(cancelRun && { cancelRun }),
    deleteRuns: runsToDelete(runs, status, settings.historyLimit),
    // The end of a Run and the condition that follows from it are one event.
    events: [...events, ...transitions.events.filter(({ reason }) => !events.some(event => event.reason === reason))],
    ...(requeueAfterMs !== undefined && { requeueAfterMs: Math.max(1, Math.ceil(requeueAfterMs)) }),
  }
}

/**
 * The current inputs. After a restart the revision is unknown at first: then the one of the last Run counts if the Stack has
 * not changed since, so that a restart writes nothing to a thousand idle Stacks.
 */
export function currentInputs({ input, runs, status }: DecisionContext): Inputs | undefined {
  const { stack, inputsDigest } = input
  const generation = stack.metadata.generation ?? 1
  if (typeof input.revision === 'string') return { generation, revision: input.revision, inputsDigest }
  const last = runs.findLast(run => !isAdHocRun(run))
  const known = last ? inputsOf(last) : (status.applied ?? status.plan)
  return known?.generation === generation ? { generation, revision: known.revision, inputsDigest } : undefined
}
