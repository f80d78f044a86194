import { join, relative } from 'node:path'
import { removeTree, SpawnError } from '../workspace/index.ts'
import { isAnonymousInstall, NpmArchives } from './archives/npm-archives.ts'
import { type AttachedAs, attachTree, linkChecker, pathOfPlace } from './attach-tree.ts'
import { DependencyError } from './dependency-error.ts'
import { type DependencyInput, dependencyDigest } from './dependency-input.ts'
import { detectDependencies } from './detect/index.ts'
import type { InstallContext, InstallOptions } from './install-context.ts'
import { machineInputs } from './machine-inputs.ts'
import { galaxyContentPath } from './managers/galaxy.ts'
import { moduleCachePath } from './managers/go-modules.ts'
import { packageManagers } from './managers/index.ts'
import type { DetectedDependencies, InstallPlan, PackageManager } from './managers/package-manager.ts'
import { relocateVirtualEnvironment } from './relocate-virtual-environment.ts'
import { findModuleDirectories, listSource, producedFiles } from './source-changes.ts'
import { joinPath, SourceFiles } from './source-files.ts'
import { DependencyStore, type InstallLock, type InstallProgress, type StoredTree } from './store/dependency-store.ts'
import type { TreePlace } from './store/tree-record.ts'

/** Installed packages, as they are in the store. Only the worker can read them there. */
export type StoredPackages = {
  readonly manager: string
  /** Absolute paths. */
  readonly trees: readonly { readonly place: TreePlace; readonly path: string }[]
}

export type InstalledDependencies = StoredPackages & {
  readonly digest: string
  /** Cached: the store had the tree. Waited: another Run has installed it meanwhile. */
  readonly source: 'Cached' | 'Waited' | 'Installed'
  readonly attachedAs: AttachedAs
  /** Variables that programs of the Run need to find the packages. */
  readonly env: Readonly<Record<string, string>>
  /** Until the programs of this Run could use them. */
  readonly seconds: number
  /** Of the install, by this Run or the one that the tree is from. */
  readonly installSeconds: number
  /** On disk. */
  readonly bytes: number
  readonly inputs: readonly DependencyInput[]
}

/** HOME of installs, in the Run's directory for files that are no part of the source: download caches and whatever install scripts leave there. */
const installHome = 'install-home'
const waitLogMs = 5_000
const maxErrorLines = 20
const maxErrorChars = 2_000

/**
 * Gives the programs of a Run the dependencies of its project: those in the store that have the digest of all inputs, or those that it installs
 * with the project's package manager, in the isolation and the limits of the Run and without its credentials, while others that need the same
 * wait. Called before a program of the Stack runs and before anything is written into the source. Undefined if the project has none.
 *
 * Programs that are started afterwards see the packages. Where they are bind mounts this process does not see them: a program among them, such as
 * `.venv/bin/python`, is started by another one, such as `sh`.
 * @throws {DependencyError}; {UnexpectedFileError} for an installed tree that cannot be shared.
 */
export async function installDependencies(context: InstallContext, options: InstallOptions): Promise<InstalledDependencies | undefined> {
  const startedMs = performance.now()
  const { sourceRoot, files, log, signal } = context
  const source = new SourceFiles(files, sourceRoot)
  const store = new DependencyStore(context.dependencies.store)
  const directory = relative(sourceRoot, options.directory)
  const detected = await detectDependencies({
    ...{ source, directory, manager: options.manager, runtime: options.runtime, requirements: options.requirements },
  })
  if (!detected) return undefined
  const project = await describeProject(context, options, detected, source)
  const inputs = [...detected.inputs, ...(await machineInputs(context, store, project.manager, project.env)), ...resolutionPeriod(detected)]
  // Where a tree is. That of other managers follows from the project, whichever of its directories the Run is in.
  const placeOfTree = { kind: 'configuration', name: 'virtual environment', value: project.virtualEnvironment } as const
  const digest = dependencyDigest(project.manager.trees === 'virtualEnvironment' ? [...inputs, placeOfTree] : inputs)
  // Several projects of a workspace have the same packages.
  const same = options.earlier?.find(each => each.digest === digest)
  if (same) return same

  const onDamaged = (problem: string) =>
    log(`the stored dependencies ${digest.slice(0, 12)} are damaged and are installed again: ${problem}`)
  const waiting = new WaitLog(log)
  const found = await store.acquireOrLock(digest, { signal, onDamaged, onWaiting: progress => waiting.report(progress) })
  let tree: StoredTree
  let attachedAs: AttachedAs | undefined
  if ('tree' in found) tree = found.tree
  else {
    const installed = await installTree(context, project, found.lock, {
      store,
      source,
      digest,
      inputs,
      ofOthers: placesOf(options.earlier ?? []),
    })
    tree = installed.tree
    // What was copied is the Run's own.
    if (installed.isOwn && !(await context.dependencies.isolation.canMount())) attachedAs = 'Installed'
    else if (installed.isOwn) for (const place of tree.record.trees) await removeTree(pathOfPlace(context, place))
  }
  context.atEnd(tree.release)
  attachedAs ??= await attachTree(tree, { ...context, isolation: context.dependencies.isolation })
  const seconds = Math.round(performance.now() - startedMs) / 1_000
  const origin = 'lock' in found ? 'Installed' : waiting.hasWaited ? 'Waited' : 'Cached'
  log(formatOutcome(origin, project.manager.name, tree, attachedAs, seconds))
  const env = project.manager.programEnv?.(place => pathOfPlace(context, place)) ?? {}
  const { installSeconds, bytes } = tree.record
  const trees = tree.record.trees.map((place, index) => ({ place, path: DependencyStore.treePath(tree, index) }))
  const installed = {
    digest,
    manager: project.manager.name,
    trees,
    source: origin,
    attachedAs,
    env,
    seconds,
    installSeconds,
    bytes,
    inputs,
  } as const
  context.dependencies.onInstalled?.(installed)
  return installed
}

/** In the source. */
const placesOf = (installed: readonly InstalledDependencies[]): string[] =>
  installed.flatMap(({ trees }) => trees.flatMap(({ place }) => (place.base === 'source' ? place.path : [])))

type Project = {
  manager: PackageManager
  /** Relative to the root of the source. */
  root: string
  virtualEnvironment: string
  plan: InstallPlan
  /** Of the install. */
  env: Readonly<Record<string, string>>
}

async function describeProject(
  context: InstallContext,
  options: InstallOptions,
  detected: DetectedDependencies,
  source: SourceFiles,
): Promise<Project> {
  const { sourceRoot, scratch, credentialNames } = context
  const manager = packageManagers[detected.manager]
  const directory = relative(sourceRoot, options.directory)
  const named = source.resolve(directory, options.virtualEnvironment ?? '.venv', 'the virtual environment')
  const virtualEnvironment = manager.name === 'poetry' ? joinPath(detected.root, '.venv') : named
  const allowed = new Set(options.installEnvironment)
  const withheld = new Set(credentialNames.filter(name => !allowed.has(name)))
  const env = Object.fromEntries(Object.entries(context.env).filter(([name]) => !withheld.has(name)))
  const paths = { sourceRoot, scratch, root: detected.root, isLocked: detected.isLocked, galaxy: detected.galaxy, virtualEnvironment }
  return { manager, root: detected.root, virtualEnvironment, plan: manager.install(paths), env }
}

/** Without a lock file, what is installed depends on when: newer versions are used from the next day on (UTC). */
function resolutionPeriod({ isLocked }: DetectedDependencies): DependencyInput[] {
  return isLocked ? [] : [{ kind: 'resolvedOn', name: 'without a lock file', value: new Date().toISOString().slice(0, 10) }]
}

/** `isOwn`: the store has copies, and the Run its own files. */
async function installTree(
  context: InstallContext,
  project: Project,
  lock: InstallLock,
  {
    store,
    source,
    digest,
    inputs,
    ofOthers,
  }: { store: DependencyStore; source: SourceFiles; digest: string; inputs: DependencyInput[]; ofOthers: readonly string[] },
): Promise<{ tree: StoredTree; isOwn: boolean }> {
  const { sourceRoot, runName, files, signal, log, dependencies } = context
  const { manager, plan, virtualEnvironment } = project
  const startedMs = Date.now()
  const report = (step: string) => lock.report({ run: runName, step, sinceMs: startedMs })
  try {
    await report('preparing the install')
    const without = [...ofOthers, ...(manager.trees === 'virtualEnvironment' ? [virtualEnvironment] : [])]
    const home = join(context.scratch, installHome)
    await files.makeDirectory(home, 0o755)
    const before = await listSource(sourceRoot, without, signal)
    if (manager.trees === 'virtualEnvironment') await removeTree(join(sourceRoot, virtualEnvironment))
    const archives = await openArchives(context, project, source, home)
    const provided = (await archives?.provide(signal)) ?? 0
    if (provided > 0) log(`${provided} archives of the lock file are on this host`)
    for (const command of plan.commands) {
      const shown = [command.command, ...command.args].join(' ').replaceAll(`${sourceRoot}/`, '')
      await report(shown)
      log(`installing dependencies ${digest.slice(0, 12)}: ${shown}`)
      await execute(context, project, command, shown, home)
    }
    await dependencies.endPrograms()
    signal.throwIfAborted()
    await archives?.collect(signal)
    await removeTree(home)
    await report('storing the installed files')
    const places = await findTrees(context, project, ofOthers)
    if (manager.trees === 'virtualEnvironment') await relocateVirtualEnvironment(files, join(sourceRoot, virtualEnvironment), sourceRoot)
    const produced = await producedFiles(sourceRoot, before, without, signal)
    const installSeconds = Math.round((Date.now() - startedMs) / 100) / 10
    const transfer = dependencies.mayMoveFiles ? 'Move' : 'Copy'
    const trees = places.map(place => ({
      place,
      path: pathOfPlace(context, place),
      checkLink: linkChecker(context, place, isInterpreter(manager)),
    }))
    const tree = await store.add({
      ...{ digest, inputs, manager: manager.name, runName, installSeconds, files, trees, produced, transfer },
    })
    return { tree, isOwn: transfer === 'Copy' }
  } finally {
    await lock.release()
  }
}

/** Undefined for a package manager whose archives are not shared. */
async function openArchives(
  { dependencies, credentialNames, workerEnvNames }: InstallContext,
  { manager, root, env }: Project,
  source: SourceFiles,
  home: string,
): Promise<NpmArchives | undefined> {
  if (manager.name !== 'npm') return undefined
  const { directory, domain } = dependencies.store
  const isAnonymous = isAnonymousInstall({ env, credentialNames, workerEnvNames, machineFiles: manager.machineFiles })
  return await NpmArchives.open({ directory, domain, source, root, home, isAnonymous })
}

/** `bin/python` of a virtual environment. */
const isInterpreter =
  ({ trees }: PackageManager) =>
  (path: string, target: string): boolean =>
    trees === 'virtualEnvironment' && /^bin\/python[\d.]*$/.test(path) && /^\/.*\/(python|pypy)[\d.]*$/.test(target)

async function findTrees(
  context: InstallContext,
  { manager, virtualEnvironment }: Project,
  ofOthers: readonly string[],
): Promise<TreePlace[]> {
  const { sourceRoot, files, signal } = context
  const inSource = (path: string): TreePlace => ({ base: 'source', path })
  switch (manager.trees) {
    case 'node_modules':
      return (await findModuleDirectories(sourceRoot, signal)).filter(path => !ofOthers.includes(path)).map(inSource)
    case 'virtualEnvironment':
      return [inSource(virtualEnvironment)]
    case 'moduleCache':
    case 'galaxyContent': {
      const place: TreePlace = { base: 'scratch', path: manager.trees === 'moduleCache' ? moduleCachePath : galaxyContentPath }
      return (await files.kindOf(pathOfPlace(context, place))) === 'directory' ? [place] : []
    }
  }
}

async function execute(
  context: InstallContext,
  { manager, plan, env }: Project,
  command: InstallPlan['commands'][number],
  shown: string,
  home: string,
): Promise<void> {
  const { run, sourceRoot, signal, log } = context
  const last: string[] = []
  const onLine = (line: string) => {
    log(line)
    last.push(line)
    if (last.length > maxErrorLines) last.shift()
  }
  try {
    const { exitCode, signal: by } = await run({
      ...{ command: command.command, args: [...command.args], cwd: join(sourceRoot, command.cwd), signal },
      env: { ...env, HOME: home, ...plan.env },
      ...{ onStdoutLine: onLine, onStderrLine: onLine },
    })
    signal.throwIfAborted()
    if (exitCode === 0) return
    const how = by ? `was ended by ${by}` : `exited with code ${exitCode}`
    throw new DependencyError('DependencyInstallFailed', `${shown} ${how}: ${last.join('\n').slice(-maxErrorChars)}`, { retryable: true })
  } catch (error) {
    if (!(error instanceof SpawnError) || error.reason === 'SpawnFailed') throw error
    const message = `the dependencies of the project need ${manager.name}: ${error.message}; ${manager.howToInstall}`
    throw new DependencyError('PackageManagerNotFound', message, { retryable: false, cause: error })
  }
}

/** Reports every five seconds for what a Run waits. */
class WaitLog {
  hasWaited = false
  readonly #log: (line: string) => void
  #nextMs = 0

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  report(progress: InstallProgress | undefined): void {
    this.hasWaited = true
    if (performance.now() < this.#nextMs) return
    this.#nextMs = performance.now() + waitLogMs
    const since = progress && `: ${progress.step}, since ${Math.max(0, Math.round((Date.now() - progress.sinceMs) / 1_000))} s`
    this.#log(`waiting for ${progress ? `Run ${progress.run}` : 'another Run'}, which installs the same dependencies${since ?? ''}`)
  }
}

const attachedText: Record<AttachedAs, string> = {
  BindMount: 'as a read-only mount',
  Reflink: 'as a copy that shares its blocks',
  Copy: 'as a copy',
  Installed: 'as its own files',
}

function formatOutcome(
  source: InstalledDependencies['source'],
  manager: string,
  { record }: StoredTree,
  attachedAs: AttachedAs,
  seconds: number,
): string {
  const origin = source === 'Installed' ? 'installed' : `that Run ${record.installedBy} has installed in ${record.installSeconds} s`
  return `dependencies of ${manager} (${record.digest.slice(0, 12)}, ${record.files} files) ${origin}: available after ${seconds.toFixed(1)} s ${attachedText[attachedAs]}`
}
