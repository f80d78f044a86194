import type { RootDirectory } from '../../kubernetes/util/index.ts'
import type { ProcessRunner, RunIsolation } from '../workspace/index.ts'
import type { Runtime } from './detect/index.ts'
import type { InstalledDependencies } from './install-dependencies.ts'
import type { ManagerName } from './managers/package-manager.ts'
import type { DependencyStoreOptions } from './store/dependency-store.ts'

/** What a worker provides for the dependencies of one Run. */
export type DependencyHost = {
  /** Of the store of the Run's trust domain. */
  store: DependencyStoreOptions
  isolation: Pick<RunIsolation, 'canMount' | 'mount' | 'markSourceChanged'>
  /**
   * Whether nothing of a program of the Run is left when it has ended, not even an open file in a process elsewhere: its files may then be shared
   * themselves, not only copies of them. So in a sandbox with a network of its own.
   */
  mayMoveFiles: boolean
  /** Ends all processes of the Run. */
  endPrograms(): Promise<void>
  /** Receives what the Run has got. */
  onInstalled?(installed: InstalledDependencies): void
}

/** The part of an engine's context that an install needs. */
export type InstallContext = {
  runName: string
  sourceRoot: string
  scratch: string
  files: RootDirectory
  env: Readonly<Record<string, string>>
  credentialNames: readonly string[]
  /** Names in `env` whose values are those of the worker's own environment. All others are the Stack's. */
  workerEnvNames: readonly string[]
  run: ProcessRunner
  signal: AbortSignal
  log(line: string): void
  atEnd(release: () => Promise<void>): void
  dependencies: DependencyHost
}

export type InstallOptions = {
  /** Of the project, absolute: in the source. */
  directory: string
  /** The language of the project. Default: what is found. */
  runtime?: Runtime | undefined
  /** Default: by `packageManager` of package.json and lock file. */
  manager?: ManagerName | undefined
  /** Ansible: the requirements file, relative to `directory`. Default: requirements.yml. */
  requirements?: string | undefined
  /** Python: relative to `directory`. Default: `.venv`, and always that for poetry. */
  virtualEnvironment?: string | undefined
  /** Those of `credentialNames` that the install gets, for private registries. Default: none. */
  installEnvironment?: readonly string[] | undefined
  /** What this Run has installed for other projects of its source: their trees are not part of this one. */
  earlier?: readonly InstalledDependencies[] | undefined
}
