import type { StackSpec } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Json } from '../../kubernetes/object/index.ts'
import type { ProcessRunner } from '../workspace/index.ts'

/** Everything an engine gets for one Run. */
export type EngineContext = {
  /** What an engine reads of the Stack's spec. `variables` holds only what the spec itself sets, without `variablesFrom`. */
  spec: Pick<StackSpec, 'engine' | 'state' | 'variables' | 'command' | 'manifests' | 'terraform'>
  stack: { namespace: string; name: string; uid: string }
  /** The Run's epoch (invariant 3). */
  epoch: number
  runName: string
  /** The engine's working directory: a private copy of the source. */
  directory: string
  /** A private directory outside `directory`, for plan files, variables and outputs; removed with the Run (invariant 9). */
  scratch: string
  /**
   * Managed state: the local state file, already holding the newest version, or absent. Where it lies relative to `directory` must be the
   * same in every Run of a Stack, because a saved Terraform plan remembers it.
   */
  statePath: string | undefined
  env: Record<string, string>
  variables: Record<string, Json>
  /** Names in `variables` whose values are secret. */
  sensitiveNames: string[]
  run: ProcessRunner
  signal: AbortSignal
  /** One line of the Run's log, without newline. */
  log(line: string): void
  progress(progress: { done: number; total: number; current?: string }): void
  client: Client
  /** manifests: the content of the kubeconfig of the cluster to apply to. Default: the cluster of `client`. */
  kubeconfig?: string
  /** Shared by the Runs of this machine, such as for provider plugins. */
  cacheDir: string
  /** A small record kept per Stack, saved durably before `write` resolves. */
  inventory: { read(): Promise<Json | undefined>; write(value: Json): Promise<void> }
}

/**
 * What would change. `summary` has one line per change, without secret values; `file` is what an approval keeps.
 * `intent` says what applying it means: only a plan made with `destroy` takes everything away.
 */
export type PlanResult = {
  intent: 'apply' | 'destroy' | 'refresh'
  digest: string
  add: number
  change: number
  destroy: number
  hasChanges: boolean
  file?: string
  summary: string[]
}

export type Output = { value: Json; sensitive: boolean }

export type ApplyResult = { outputs: Record<string, Output>; resources: number; changed: boolean }

export type PlanOptions = { destroy?: boolean; refreshOnly?: boolean }

export type Detection = { found: true; version: string; path: string } | { found: false; lookedFor: string[]; howToInstall: string }

/** One way to make infrastructure so. Calls of one Run come in this order: prepare, plan (or readPlan), apply. */
export interface Engine {
  readonly name: string
  /**
   * Looks for what the engine needs on this machine; `env` is the worker's own environment. With `isFresh` the program itself is asked,
   * however lately it was: its file may be a link or a script that starts another version by now.
   */
  detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection>
  /** Makes the directory ready. @throws {EngineError} */
  prepare(context: EngineContext): Promise<void>
  /** Looks, and changes nothing but caches and files of ours. @throws {EngineError} */
  plan(context: EngineContext, options?: PlanOptions): Promise<PlanResult>
  /**
   * Reads a plan kept by an earlier Run, and says what it means against the present state. A digest other than the approved one means
   * that the plan is outdated. @throws {EngineError}
   */
  readPlan(context: EngineContext, file: string): Promise<PlanResult>
  /** Does exactly what `plan` says; a destroy plan destroys and leaves 0 resources. @throws {EngineError} */
  apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult>
}
