/**
 * @module controllers/stack: decides which Run a Stack needs next and what its status reports. Start reading at `decide-stack.ts`.
 * Input: a Stack, its Runs, its dependencies and dependents, the revision of its source, a digest of its inputs, the time.
 * Output: the next status, at most one new Run (invariant 1), Runs to cancel or delete, events, when to requeue.
 * Out of scope: assigning a Run to a Worker (`controllers/dispatch/`), executing it (`execution/worker/`), resolving sources
 * (`execution/workspace/`, passed in as a function).
 *
 * A decision goes through three steps, each a file with what it consists of around it. None changes what it receives:
 * - `facts.ts` (`fold-runs.ts`, `inputs.ts`, `destruction.ts`): what happened. The Stack and its Runs become `StackFacts`.
 * - `choose-next.ts` (`choose-run.ts`, `choose-deletion.ts`, `new-run.ts`): what is next. The facts become a `NextStep`.
 * - `build-decision.ts` (`outlook-conditions.ts`, `deletion-conditions.ts`, `persistent-failure.ts`, `history-limit.ts`, `coalesce-status.ts`): the status, whether it
 *   is worth a write, and the actions. Texts are here.
 *
 * All of it is pure; `testdata/` holds the behavior as transcripts. Around it, `stack-controller.ts` connects `input-reader.ts` (what a decision
 * sees, with `revision-cache.ts`) and `decision-executor.ts` (every write, and what makes it safe).
 */

export { stackFinalizer } from '../../api/index.ts'
export { hasResources } from './choose-deletion.ts'
export type { StackEvent } from './conditions.ts'
export { decideStack } from './decide-stack.ts'
export type { RevisionError, StackDecision, StackInput, StateCheck } from './decision.ts'
export { type Dependency, dependencyGate, dependencyNames, dependentsOf, findCycle, notReadyReason } from './dependencies.ts'
export { type InputSources, keyDigests, resolveInputs, type StackInputs } from './inputs-digest.ts'
export { jitteredIntervalMs, jitterOf } from './jitter.ts'
export { priorityClassOf } from './priority-class.ts'
export { readHasResources } from './read-has-resources.ts'
export { isNamespaceTerminating, readRequiresApproval } from './read-namespace.ts'
export { runName } from './run-name.ts'
export { retryDelayMs, type Settings, settingsOf } from './settings.ts'
export { specErrors } from './spec-errors.ts'
export { addStackController, type StackControllerOptions } from './stack-controller.ts'
export type { CheckState, StateCheckRate } from './state-checks.ts'
