import type { DependencyInput } from '../dependency-input.ts'
import type { SourceFiles } from '../source-files.ts'
import type { TreePlace } from '../store/tree-record.ts'

export const managerNames = ['npm', 'pnpm', 'yarn', 'yarn-berry', 'bun', 'pip', 'uv', 'poetry', 'go', 'galaxy'] as const
export type ManagerName = (typeof managerNames)[number]

/** Dependencies of a project that a manager can install. Paths are relative to the root of the source. */
export type DetectedDependencies = {
  readonly manager: ManagerName
  /** Where the manager runs. */
  readonly root: string
  /** Without a lock file, the tree carries what was resolved when it was installed. */
  readonly isLocked: boolean
  /** Of manager galaxy. */
  readonly galaxy?: GalaxyContent
  /** Of the source; programs, platform and environment are added later. */
  readonly inputs: readonly DependencyInput[]
}

/** What a requirements file of Ansible lists. */
export type GalaxyContent = {
  /** Relative to the project. */
  readonly file: string
  readonly collections: number
  readonly roles: number
  /** SHA-256 in hexadecimal by the name of the archive, such as `community-general-9.0.0.tar.gz`. */
  readonly checksums: Readonly<Record<string, string>>
}

export type DetectOptions = {
  source: SourceFiles
  /** Of the Stack's project. */
  directory: string
  /** Only this manager. Default: by lock file and `packageManager`. */
  manager?: ManagerName | undefined
  /** Manager galaxy: the requirements file, relative to `directory`. Default: requirements.yml. */
  requirements?: string | undefined
}

/** A command of an install; `cwd` is relative to the root of the source. */
export type InstallCommand = { readonly command: string; readonly args: readonly string[]; readonly cwd: string }

export type InstallPlan = {
  readonly commands: readonly InstallCommand[]
  /** Of the install only. */
  readonly env: Readonly<Record<string, string>>
}

export type InstallPaths = {
  /** Absolute. */
  readonly sourceRoot: string
  readonly scratch: string
  readonly root: string
  readonly isLocked: boolean
  readonly galaxy?: GalaxyContent | undefined
  /** Relative to the root of the source. */
  readonly virtualEnvironment: string
}

/** What differs between package managers. */
export type PackageManager = {
  readonly name: ManagerName
  /** As it is called: the program that is looked up on the PATH. */
  readonly program: string
  /** Programs whose versions are inputs, with the arguments that print it. The first is the manager. */
  readonly versions: readonly { readonly kind: 'manager' | 'runtime'; readonly program: string; readonly args: readonly string[] }[]
  readonly howToInstall: string
  /** Variables of the worker's environment that change the result of an install. Those of the Stack are all inputs. */
  readonly environment: RegExp
  /** Files of the machine that it reads. */
  readonly machineFiles: readonly string[]
  /** Where installed packages are: directories with this name in the source, one directory of the source, or one of its own. */
  readonly trees: 'node_modules' | 'virtualEnvironment' | 'moduleCache' | 'galaxyContent'
  install(paths: InstallPaths): InstallPlan
  /** Variables that programs need to find the packages. `path` gives the absolute path of a tree. */
  programEnv?(path: (place: TreePlace) => string): Record<string, string>
}
