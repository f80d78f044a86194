/**
 * @module controllers/stack: decides which Run a Stack needs next and what its status reports. Start reading at `decide-stack.ts`.
 * Input: a Stack, its Runs, its dependencies and dependents, the revision of its source, a digest of its inputs, the time.
 * Output: the next status, at most one new Run (invariant 1), Runs to cancel or delete, events, when to requeue.
 * Out of scope: assigning a Run to a Worker (`controllers/dispatch/`), executing it (`execution/worker/`), resolving sources
 * (`execution/workspace/`, passed in as a function).
 * Everything except `stack-controller.ts` and `revision-cache.ts` is pure; `testdata/` holds the behavior as transcripts.
 */

export type { StackEvent } from './conditions.ts'
export { stackFinalizer } from './constants.ts'
export { decideStack } from './decide-stack.ts'
export type { RevisionError, StackDecision, StackInput } from './decision.ts'
export { type Dependency, dependencyGate, dependencyNames, findCycle } from './dependencies.ts'
export { type InputSources, keyDigests, resolveInputs, type StackInputs } from './inputs-digest.ts'
export { jitteredIntervalMs, jitterOf } from './jitter.ts'
export { priorityClassOf } from './priority-class.ts'
export { runName } from './run-name.ts'
export { retryDelayMs, type Settings, settingsOf } from './settings.ts'
export { specErrors } from './spec-errors.ts'
export { addStackController, type StackControllerOptions } from './stack-controller.ts'
