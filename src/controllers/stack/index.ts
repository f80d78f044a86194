/**
 * @module stack: which Run a Stack needs next, and what its status says. Start reading at `decide-stack.ts`.
 * In: a Stack, its Runs, its neighbours, the revision of its source, a digest of its inputs, the time.
 * Out: the next status, at most one new Run (invariant 1), Runs to cancel or forget, events, when to look again.
 * Not done here: which Worker gets a Run (`dispatch/`), doing it (`worker/`), reading sources (`workspace/`, passed in).
 * Everything but `stack-controller.ts` and `revisions.ts` is pure; `testdata/` is the behaviour as transcripts.
 */

export type { StackEvent } from './conditions.ts'
export { decideStack, jitterOf, type RevisionError, type StackDecision, type StackInput } from './decide-stack.ts'
export { type Dependency, dependencyGate, dependencyNames, findCycle } from './dependencies.ts'
export { type InputSources, keyDigests, resolveInputs, type StackInputs } from './inputs-digest.ts'
export { stackFinalizer } from './limits.ts'
export { runClass } from './run-class.ts'
export { runName } from './run-name.ts'
export { backoffMs, jitteredIntervalMs, type Settings, settingsOf } from './settings.ts'
export { specErrors } from './spec-errors.ts'
export { addStackController, type StackControllerOptions } from './stack-controller.ts'
