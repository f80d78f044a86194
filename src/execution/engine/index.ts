/**
 * @module engine: what does the work of a Run. Start reading at `engine.ts`; one folder per engine.
 * In: a directory with the source, variables, a state file, a way to run processes. Out: a plan, progress, log lines, outputs.
 * Every engine plans, keeps what it planned under a digest, and applies exactly that. Errors are `EngineError`s a newcomer understands.
 * Not here: fetching sources (`workspace/`), keeping state and locks (`state/`), deciding what to run (`stack/`), reporting (`worker/`).
 */
export type { ApplyResult, Detection, Engine, EngineContext, Output, PlanOptions, PlanResult } from './engine.ts'
export { type Diagnostic, EngineError, type EngineErrorReason } from './engine-error.ts'
export { detectEngines, loadEngine } from './engine-registry.ts'
