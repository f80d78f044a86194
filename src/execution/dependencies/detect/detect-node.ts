import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { parseUntrustedYaml } from '../../../kubernetes/util/index.ts'
import { DependencyError } from '../dependency-error.ts'
import { expandGlobs } from '../expand-globs.ts'
import type { DetectedDependencies, DetectOptions, ManagerName } from '../managers/package-manager.ts'
import { ancestorsOf, joinPath, type SourceFiles } from '../source-files.ts'
import { InputList } from './input-list.ts'

type Manifest = Record<string, unknown>
type NodeManager = Extract<ManagerName, 'npm' | 'pnpm' | 'yarn' | 'yarn-berry' | 'bun'>

const lockFiles: readonly { readonly name: string; readonly manager: 'npm' | 'pnpm' | 'yarn' | 'bun' }[] = [
  { name: 'npm-shrinkwrap.json', manager: 'npm' },
  { name: 'package-lock.json', manager: 'npm' },
  { name: 'pnpm-lock.yaml', manager: 'pnpm' },
  { name: 'yarn.lock', manager: 'yarn' },
  { name: 'bun.lock', manager: 'bun' },
  { name: 'bun.lockb', manager: 'bun' },
]
const configurationFiles = [
  ...['.npmrc', '.yarnrc', '.yarnrc.yml', 'yarn.config.cjs', '.pnpmfile.cjs', '.pnpmfile.mjs', 'pnpm-workspace.yaml', 'bunfig.toml'],
  ...['.yarn/plugins', '.yarn/releases'],
]
const patchDirectories = ['patches', '.yarn/patches']
const dependencyFields = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']
/** Scripts of a package that an install in the source executes (https://docs.npmjs.com/cli/using-npm/scripts). */
const installScripts = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare']
/** A package with this file is compiled when it is installed, without any script (https://docs.npmjs.com/cli/using-npm/scripts). */
const addonFile = 'binding.gyp'
/** They read nothing of the source but what is an input anyway. */
const knownScript = /^(npx )?(patch-package|husky|husky install)$/
/** A module of Node.js that loads or evaluates something else. */
const loadsModules = /\b(require|import|getBuiltinModule|eval|Function)\b/
const localPrefix = /^(file|link|portal|workspace):/

/**
 * The project of npm, pnpm, yarn or bun that the directory belongs to: the nearest directory upwards with a package.json, or the workspace that
 * contains it. Undefined if there is none.
 * @throws {DependencyError} if a manifest cannot be read, or it is not clear which manager the project has.
 */
export async function detectNode({ source, directory, manager: wanted }: DetectOptions): Promise<DetectedDependencies | undefined> {
  const manifests = new Manifests(source)
  const project = await findFirst(ancestorsOf(directory), async path => (await manifests.read(path)) !== undefined)
  if (project === undefined) return undefined
  const { root, members } = await findWorkspace(manifests, project)
  const { manager, lockFile } = await findManager(manifests, root, wanted)
  const inputs = new InputList(source)
  if (lockFile) await inputs.add('lockFile', joinPath(root, lockFile))
  for (const name of configurationFiles) await inputs.add('configuration', joinPath(root, name))
  if (manager === 'yarn' || manager === 'yarn-berry') await addYarnPrograms(source, inputs, root)
  if (manager === 'pnpm') await addPnpmHooks(manifests, inputs, root)
  for (const path of new Set([root, ...members, project])) await inputs.add('manifest', joinPath(path, 'package.json'))
  for (const name of patchDirectories) await inputs.add('patch', joinPath(root, name))
  for (const path of await patchedDependencies(manifests, root)) await inputs.add('patch', path)
  await addLocalPackages(manifests, inputs, root, members)
  return { manager, root, isLocked: lockFile !== undefined, inputs: inputs.list }
}

class Manifests {
  readonly source: SourceFiles
  readonly #known = new Map<string, Promise<Manifest | undefined>>()

  constructor(source: SourceFiles) {
    this.source = source
  }

  read(directory: string): Promise<Manifest | undefined> {
    const found = this.#known.get(directory) ?? this.#parse(joinPath(directory, 'package.json'))
    this.#known.set(directory, found)
    return found
  }

  async workspaceFile(directory: string): Promise<Manifest | undefined> {
    const path = joinPath(directory, 'pnpm-workspace.yaml')
    const text = await this.source.text(path)
    if (text === undefined) return undefined
    return parseYaml(path, text)
  }

  async #parse(path: string): Promise<Manifest | undefined> {
    const text = await this.source.text(path)
    if (text === undefined) return undefined
    try {
      const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
      if (isJsonObject(value)) return value
    } catch {
      // The message would quote the file.
    }
    throw invalid(path, 'it is not a JSON object')
  }
}

function parseYaml(path: string, text: string): Manifest {
  try {
    const value = parseUntrustedYaml(text)
    return isJsonObject(value) ? value : {}
  } catch (error) {
    throw invalid(path, (error as Error).message)
  }
}

const invalid = (path: string, problem: string) =>
  new DependencyError('InvalidConfiguration', `${path} cannot be read: ${problem}`, { retryable: false })

async function findFirst<T>(items: readonly T[], matches: (item: T) => Promise<boolean>): Promise<T | undefined> {
  for (const item of items) if (await matches(item)) return item
  return undefined
}

async function findWorkspace(manifests: Manifests, project: string): Promise<{ root: string; members: string[] }> {
  for (const root of ancestorsOf(project)) {
    const patterns = await workspacePatterns(manifests, root)
    if (patterns.length === 0) continue
    const members = await expandGlobs(manifests.source, root, patterns)
    if (root === project || members.includes(project)) return { root, members: await withManifest(manifests, members) }
  }
  return { root: project, members: [] }
}

async function withManifest(manifests: Manifests, directories: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const directory of directories) if (await manifests.read(directory)) found.push(directory)
  return found
}

async function workspacePatterns(manifests: Manifests, root: string): Promise<string[]> {
  const ofPnpm = (await manifests.workspaceFile(root))?.packages
  const declared = (await manifests.read(root))?.workspaces
  const ofManifest = isJsonObject(declared) ? declared.packages : declared
  return [ofPnpm, ofManifest].flatMap(strings)
}

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.filter(item => typeof item === 'string') : [])

async function findManager(
  manifests: Manifests,
  root: string,
  wanted: ManagerName | undefined,
): Promise<{ manager: NodeManager; lockFile: string | undefined }> {
  const { source } = manifests
  const locks: typeof lockFiles = (
    await Promise.all(lockFiles.map(async lock => ((await source.exists(joinPath(root, lock.name))) ? [lock] : [])))
  ).flat()
  const declared = /^(npm|pnpm|yarn|bun)@(\d+)/.exec(`${(await manifests.read(root))?.packageManager ?? ''}`)
  const managers = new Set(locks.map(({ manager }) => manager))
  const chosen = (wanted === 'yarn-berry' ? 'yarn' : wanted) ?? declared?.[1] ?? (managers.size === 1 ? [...managers][0] : undefined)
  if (chosen === undefined && managers.size > 1) {
    const names = locks.map(({ name }) => name).join(', ')
    const message = `the project in ${root || 'the root of the source'} has lock files of several package managers (${names}); set packageManager in its package.json, or remove the others`
    throw new DependencyError('InvalidConfiguration', message, { retryable: false })
  }
  const manager = (chosen ?? 'npm') as 'npm' | 'pnpm' | 'yarn' | 'bun'
  const lockFile = locks.find(lock => lock.manager === manager)?.name
  if (manager !== 'yarn') return { manager, lockFile }
  const isBerry =
    wanted === 'yarn-berry' ||
    (declared?.[1] === 'yarn' ? Number(declared[2]) >= 2 : await source.exists(joinPath(root, '.yarnrc.yml'))) ||
    /^__metadata:/m.test((await source.text(joinPath(root, 'yarn.lock'))) ?? '')
  return { manager: isBerry ? 'yarn-berry' : 'yarn', lockFile }
}

/** Files that `patchedDependencies` of pnpm and bun, and `patch:` of yarn, name. */
async function patchedDependencies(manifests: Manifests, root: string): Promise<string[]> {
  const manifest = (await manifests.read(root)) ?? {}
  const ofPnpm = isJsonObject(manifest.pnpm) ? manifest.pnpm.patchedDependencies : undefined
  const declared = [manifest.patchedDependencies, ofPnpm, (await manifests.workspaceFile(root))?.patchedDependencies]
  const named = declared.filter(isJsonObject).flatMap(patches => strings(Object.values(patches)))
  const ofYarn = [...JSON.stringify(manifest).matchAll(/"patch:[^"]*#(?:~\/|\.\/)?([^"#]+\.patch)"/g)].map(([, path]) => path!)
  return [...named, ...ofYarn].map(path => manifests.source.resolve(root, path, `a patch in ${joinPath(root, 'package.json')}`))
}

/**
 * Yarn itself, where a file of the source is it (`yarnPath`), and its plugins. Yarn reads its configuration in all directories above too.
 * @throws {DependencyError} if one of them is outside of the source.
 */
async function addYarnPrograms(source: SourceFiles, inputs: InputList, root: string): Promise<void> {
  for (const directory of ancestorsOf(root)) {
    for (const name of ['.yarnrc.yml', '.yarnrc']) {
      const file = joinPath(directory, name)
      const text = await source.text(file)
      if (text === undefined) continue
      await inputs.add('configuration', file)
      for (const path of name === '.yarnrc' ? classicYarnPath(text) : yarnPrograms(parseYaml(file, text)))
        await inputs.add('configuration', source.resolve(directory, path, file))
    }
  }
}

/** https://classic.yarnpkg.com/lang/en/docs/yarnrc/: `yarn-path "./tools/yarn.js"` */
const classicYarnPath = (text: string): string[] => [...text.matchAll(/^\s*"?yarn-path"?\s+"?([^"\n]+?)"?\s*$/gm)].map(([, path]) => path!)

/** https://yarnpkg.com/configuration/yarnrc: `yarnPath`, and `plugins`, which are paths or have one. */
function yarnPrograms({ yarnPath, plugins }: Manifest): string[] {
  const named = Array.isArray(plugins) ? plugins.map(plugin => (isJsonObject(plugin) ? plugin.path : plugin)) : []
  return [yarnPath, ...named].filter(path => typeof path === 'string')
}

/**
 * The file with the hooks of pnpm, which are executed before packages are resolved (https://pnpm.io/pnpmfile). One that loads anything may
 * read every file of the source: then all of them are inputs, as for install scripts.
 */
async function addPnpmHooks(manifests: Manifests, inputs: InputList, root: string): Promise<void> {
  const { source } = manifests
  const declared = (await manifests.workspaceFile(root))?.pnpmfile
  const npmrc = (await source.text(joinPath(root, '.npmrc'))) ?? ''
  const configured = [...npmrc.matchAll(/^\s*(?:global-)?pnpmfile\s*=\s*(.+?)\s*$/gm)].map(([, path]) => path!)
  const named = typeof declared === 'string' ? [declared] : strings(declared)
  for (const path of ['.pnpmfile.cjs', '.pnpmfile.mjs', ...named, ...configured]) {
    const file = source.resolve(root, path, `pnpmfile of ${root || 'the root of the source'}`)
    const text = await source.text(file)
    if (text === undefined) continue
    await inputs.add('configuration', file)
    if (loadsModules.test(text)) await inputs.add('localPackage', '')
  }
}

/** Adds the contents of packages of the source that others depend on, and of those that execute something when they are installed. */
async function addLocalPackages(manifests: Manifests, inputs: InputList, root: string, members: readonly string[]): Promise<void> {
  const memberOf = new Map<unknown, string>()
  for (const member of members) memberOf.set((await manifests.read(member))?.name, member)
  const pending = [root, ...members]
  const seen = new Set(pending)
  for (let directory = pending.shift(); directory !== undefined; directory = pending.shift()) {
    const manifest = await manifests.read(directory)
    if (!manifest) continue
    await inputs.add('manifest', joinPath(directory, 'package.json'))
    if (hasInstallScripts(manifest) || (await manifests.source.exists(joinPath(directory, addonFile))))
      await inputs.add('localPackage', directory)
    for (const [name, version] of dependenciesOf(manifest)) {
      const path = localPath(manifests.source, directory, root, version, memberOf.get(name))
      if (path === undefined) continue
      await inputs.add('localPackage', path)
      if (!seen.has(path)) pending.push(path)
      seen.add(path)
    }
  }
}

function* dependenciesOf(manifest: Manifest): Generator<[name: string, version: string]> {
  const nested = function* (value: unknown): Generator<[string, string]> {
    if (!isJsonObject(value)) return
    for (const [name, version] of Object.entries(value)) {
      if (typeof version === 'string') yield [name, version]
      else yield* nested(version)
    }
  }
  for (const field of dependencyFields) yield* nested(manifest[field])
  // What they replace packages with may be local too.
  for (const [name, version] of [
    ...nested(manifest.overrides),
    ...nested(manifest.resolutions),
    ...nested(isJsonObject(manifest.pnpm) ? manifest.pnpm.overrides : undefined),
  ])
    if (localPrefix.test(version)) yield [name, version]
}

/** Where a dependency is in the source; undefined if it is not there. */
function localPath(source: SourceFiles, directory: string, root: string, version: string, member: string | undefined): string | undefined {
  const what = `a dependency of ${joinPath(directory, 'package.json')}`
  const [, protocol, path = ''] = /^(file|link|portal|workspace):(.*)$/.exec(version) ?? []
  // `workspace:packages/a` of yarn is relative to the root; `workspace:^` names a version.
  if (protocol === 'workspace') return member ?? (path.includes('/') ? source.resolve(root, path, what) : undefined)
  if (protocol !== undefined) return source.resolve(directory, path.replace(/^\/\/(?!\/)/, ''), what)
  if (/^\.{1,2}(\/|$)/.test(version)) return source.resolve(directory, version, what)
  return member
}

function hasInstallScripts({ scripts }: Manifest): boolean {
  if (!isJsonObject(scripts)) return false
  return installScripts.some(name => {
    const script = scripts[name]
    return typeof script === 'string' && script.trim() !== '' && !knownScript.test(script.trim())
  })
}
