import type { RunOptions, StackSpec } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Json } from '../../kubernetes/object/index.ts'
import type { RootDirectory } from '../../kubernetes/util/index.ts'
import type { StateClient } from '../../stores/state/index.ts'
import type { DependencyHost } from '../dependencies/index.ts'
import type { ContentStore, ProcessRunner } from '../workspace/index.ts'
import type { ProviderUsage } from './provider-usage.ts'

/**
 * The state of a Pulumi stack, with the epoch of the Run; see `StateClient`. A call continues while the Run is interrupted, so that what its CLI still
 * finishes is stored.
 */
export type RunPulumiState = {
  readPulumiState(): ReturnType<StateClient['readPulumiState']>
  /** Without its content. */
  readPulumiVersion(): ReturnType<StateClient['readPulumiVersion']>
  /** `update`: it is a checkpoint of this update, and replaces the one before. */
  writePulumiState(bytes: Uint8Array, update?: number): Promise<number>
  appendJournal(update: number, batch: Uint8Array, cliVersion: string | undefined): Promise<number>
  completeJournal(update: number): Promise<number>
  /** Keeps what arrived too late as an orphan. The Run continues, whatever the store responds. */
  keepPulumiState(bytes: Uint8Array): Promise<void>
  keepJournal(batch: Uint8Array): Promise<void>
  encrypt(values: readonly Uint8Array[]): Promise<readonly Uint8Array[]>
  decrypt(values: readonly Uint8Array[]): Promise<readonly Uint8Array[]>
}

/** Everything an engine gets for one Run. */
export type EngineContext = {
  /**
   * The part of the Stack's spec that engines read. A name in its `variables` that the configuration does not declare is an error;
   * an undeclared name that comes from `variablesFrom` is not.
   */
  spec: Pick<
    StackSpec,
    | 'engine'
    | 'approval'
    | 'dependsOn'
    | 'variablesFrom'
    | 'isolation'
    | 'resources'
    | 'state'
    | 'variables'
    | 'command'
    | 'manifests'
    | 'terraform'
    | 'pulumi'
    | 'ansible'
  >
  stack: { namespace: string; name: string; uid: string }
  /** The Run's epoch (invariant 3). */
  epoch: number
  runName: string
  /** A Destroy Run: nothing is created. */
  isDestroy: boolean
  /** False for a Run of type Plan: it changes no state. Others have the lock of the Stack: every earlier one of them has ended (invariant 1). */
  mayWrite: boolean
  /** The engine's working directory: a private copy of the source. */
  directory: string
  /** Of the source as it was fetched: of its bytes where the Stack requires approval, otherwise its revision. Part of a plan's digest. */
  sourceDigest: string
  /** The root of the source, which contains `directory`: symlinks of the source stay inside. */
  sourceRoot: string
  /** Outside `directory`, for files that the engine's programs write, such as outputs; removed with the Run (invariant 9). */
  scratch: string
  /** For files that the programs read. A sandboxed program cannot change them. */
  inputs: string
  /** For files of this process only. A sandboxed program does not see them. */
  private: string
  /** Accesses every file of the Run: programs may have left symlinks, pipes or huge files in `directory` and `scratch`. */
  files: RootDirectory
  /**
   * Managed state: path of the local state file. It already has the newest version, or does not exist yet. Its path relative to
   * `directory` must be the same in every Run of a Stack, because a saved Terraform plan contains it.
   */
  statePath: string | undefined
  /** pulumi: Managed state. */
  pulumiState: RunPulumiState
  env: Record<string, string>
  /** Names in `env` that may be credentials. They are only for commands that use them, not for fetching modules and providers. */
  credentialNames: string[]
  /** Names in `env` whose values are those of the worker's own environment. All others are the Stack's. */
  workerEnvNames: string[]
  variables: Record<string, Json>
  /** Names in `variables` whose values are secret. */
  sensitiveNames: string[]
  run: ProcessRunner
  signal: AbortSignal
  /** Appends one line, without newline, to the Run's log. */
  log(line: string): void
  /**
   * `creating`: resources whose creation is in progress, if a next Run would create them again. `running`: what else is in progress, if its result is not
   * known without this Run. A Run that is lost reports both.
   */
  progress(progress: { done: number; total: number; current?: string; creating?: readonly string[]; running?: readonly string[] }): void
  /** Operations that were interrupted, for the status of the Run. The last call counts. `isOwn`: by this Run. */
  pendingOperations(operations: readonly { readonly type: string; readonly urn: string }[], options: { isOwn: boolean }): void
  client: Client
  /** manifests: the content of the kubeconfig of the target cluster. Default: the cluster of `client`. */
  kubeconfig?: string
  /** Values of Secrets by the field of the spec that names their key, such as `spec.ansible.privateKeySecretRef`. Secret. */
  secrets: Readonly<Record<string, string>>
  /** Shared by the Runs of this machine. Programs of a Run in a sandbox do not see it. */
  cacheDir: string
  /** Trees that Runs of the same trust domain share, such as provider plugins. Sandboxed programs can read `visible`, and change nothing. */
  contentStore: ContentStore
  /** Counts what the Run gets from `contentStore`, and what it downloads. */
  providerUsage: ProviderUsage
  /** For `installDependencies`. */
  dependencies: DependencyHost
  /** The outputs of another Stack of the namespace, from its Secret; undefined if it has none. */
  readStackOutputs(name: string): Promise<StackOutputs | undefined>
  /** Lets sandboxed programs of the Run read this program of the worker. Others see it anyway. */
  showProgram(path: string): void
  /** Calls `release` when the Run's programs have ended. */
  atEnd(release: () => Promise<void>): void
  /** A small record that is stored per Stack. `write` resolves when the record is durable. */
  inventory: { read(): Promise<Json | undefined>; write(value: Json): Promise<void> }
}

/** What {@link Engine.warm} has of it: no state, no server, and nothing that is reported of a Run. */
export type WarmContext = Omit<
  EngineContext,
  | 'pulumiState'
  | 'statePath'
  | 'client'
  | 'kubeconfig'
  | 'secrets'
  | 'inventory'
  | 'readStackOutputs'
  | 'pendingOperations'
  | 'progress'
  | 'epoch'
  | 'mayWrite'
  | 'sourceDigest'
>

/**
 * What would change. `digest` covers everything that apply depends on, also `file`. `summary` has one line per change, without values, if the engine has not logged them; `file` is stored for approval.
 * `diff` is undefined if nothing would change, and for a plan of an earlier Run, which has stored it.
 * `intent` is the operation that apply will perform: only a plan made with `destroy` deletes everything.
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
  diff?: PlanDiff | undefined
  /** Values that the engine knows to be secret, besides those of the Run. */
  secrets?: string[]
  /** Ends the message of a Run that ends with this plan. */
  note?: string
}

/**
 * A plan in full, for people (`text`, the engine's own format without colors) and for programs. What the engine marks as sensitive is
 * hidden. Secrets that it does not know as such may be in it: the worker masks them.
 */
export type PlanDiff = { text: string; document: Json }

export type Output = { value: Json; sensitive: boolean }

/** `pulumiStack`: `<project>/<stack>` of a Stack of engine pulumi, to which others refer. */
export type StackOutputs = { outputs: Record<string, Output>; pulumiStack?: string }

/** `note` ends the message of the Run. */
export type ApplyResult = StackOutputs & { resources: number; changed: boolean; note?: string }

/** `options` are those of the Run, which only terraform, opentofu and pulumi have. */
export type PlanOptions = { destroy?: boolean; refreshOnly?: boolean; options?: RunOptions | undefined }

export type Detection = { found: true; version: string; path: string } | { found: false; reasons: string[]; howToInstall: string }

/** A tool that manages infrastructure. The calls of one Run come in this order: prepare, plan (or readPlan), apply. */
export interface Engine {
  readonly name: string
  /**
   * Looks for the programs that the engine needs; `env` is the worker's own environment. With `isFresh` the program is executed to
   * read its version even when the version is cached: its file may be a symlink or a script that now starts another version.
   */
  detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection>
  /** Prepares the working directory, as `terraform init` does. @throws {EngineError} */
  prepare(context: EngineContext): Promise<void>
  /**
   * Puts the packages, providers and plugins of the program into the stores of the host, and uses neither state nor variables. Unset: there are
   * only packages. @throws {EngineError} {DependencyError}
   */
  readonly warm?: (context: WarmContext) => Promise<void>
  /** Computes the changes. Writes only caches and files of the Run. @throws {EngineError} */
  plan(context: EngineContext, options?: PlanOptions): Promise<PlanResult>
  /**
   * Reads the plan of an earlier Run and evaluates it against the current state. When the digest differs from the approved one, the
   * plan is outdated. @throws {EngineError}
   */
  readPlan(context: EngineContext, file: string, options?: PlanOptions): Promise<PlanResult>
  /** What the Stack has now; called after a plan that found nothing to change. @throws {EngineError} */
  readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>>
  /** Applies exactly `plan`. A destroy plan deletes everything and leaves 0 resources. @throws {EngineError} */
  apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult>
}
