/**
 * @module execution/engine: plans and applies the infrastructure of a Run. Start reading at `engine.ts`; there is one folder per engine.
 * In: a directory with the source, variables, a state file, a way to run processes. Out: a plan, progress, log lines, outputs.
 * Every engine plans, stores what it planned under a digest, and applies exactly that plan. Errors are `EngineError`s that a newcomer understands.
 * Out of scope: fetching sources (`execution/workspace/`), storing state and locks (`stores/state/`), deciding which Run a Stack needs
 * (`controllers/stack/`), reporting status (`execution/worker/`).
 */
export type { Diagnostic } from './diagnostics.ts'
export type {
  ApplyResult,
  Detection,
  Engine,
  EngineContext,
  Output,
  PlanDiff,
  PlanOptions,
  PlanResult,
  RunPulumiState,
  StackOutputs,
  WarmContext,
} from './engine.ts'
export { EngineError, type EngineErrorReason } from './engine-error.ts'
export { detectEngines, interruptTargetOf, loadEngine } from './engine-registry.ts'
export { maxPlanBytes } from './file-limits.ts'
export { ProviderUsage } from './provider-usage.ts'
