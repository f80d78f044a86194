import type { DetectedDependencies, DetectOptions, ManagerName } from '../managers/package-manager.ts'
import { ancestorsOf, joinPath, type SourceFiles } from '../source-files.ts'
import { InputList } from './input-list.ts'

type PythonManager = Extract<ManagerName, 'pip' | 'uv' | 'poetry'>

const projectFiles = ['uv.lock', 'poetry.lock', 'requirements.txt', 'pyproject.toml']
const manifestFiles = ['pyproject.toml', 'setup.py', 'setup.cfg']
const configurationFiles = ['pip.conf', 'uv.toml', 'poetry.toml', '.python-version']
const maxRequirementFiles = 100

/**
 * The project of pip, uv or poetry that the directory belongs to: the nearest directory upwards with a lock file, a requirements.txt or a
 * pyproject.toml. Undefined if there is none.
 */
export async function detectPython({ source, directory, manager: wanted }: DetectOptions): Promise<DetectedDependencies | undefined> {
  const has = (path: string, name: string) => source.exists(joinPath(path, name))
  for (const root of ancestorsOf(directory)) {
    const found = await Promise.all(projectFiles.map(name => has(root, name)))
    if (!found.includes(true)) continue
    const workspace = await findUvLock(source, root)
    const manager = (wanted as PythonManager | undefined) ?? (await chooseManager(source, root, workspace))
    const inputs = new InputList(source)
    for (const name of manifestFiles) await inputs.add('manifest', joinPath(root, name))
    for (const name of configurationFiles) await inputs.add('configuration', joinPath(root, name))
    const isLocked = await addInputs[manager](source, root, inputs, workspace)
    return { manager, root, isLocked, inputs: inputs.list }
  }
  return undefined
}

async function chooseManager(source: SourceFiles, root: string, workspace: string | undefined): Promise<PythonManager> {
  if (workspace !== undefined) return 'uv'
  if (await source.exists(joinPath(root, 'poetry.lock'))) return 'poetry'
  if (await source.exists(joinPath(root, 'requirements.txt'))) return 'pip'
  return /^\[tool\.poetry\b/m.test((await source.text(joinPath(root, 'pyproject.toml'))) ?? '') ? 'poetry' : 'uv'
}

/** The directory of the uv.lock of a project: its own, or the one of its workspace. */
async function findUvLock(source: SourceFiles, root: string): Promise<string | undefined> {
  for (const path of ancestorsOf(root)) {
    if (!(await source.exists(joinPath(path, 'uv.lock')))) continue
    const manifest = (await source.text(joinPath(path, 'pyproject.toml'))) ?? ''
    if (path === root || /^\[tool\.uv\.workspace\]/m.test(manifest)) return path
  }
  return undefined
}

/** Each returns whether what is installed is fixed. */
const addInputs: Record<
  PythonManager,
  (source: SourceFiles, root: string, inputs: InputList, workspace: string | undefined) => Promise<boolean>
> = {
  async uv(source, root, inputs, workspace) {
    if (workspace === undefined) {
      await addPathDependencies(source, root, inputs)
      return false
    }
    const lockFile = joinPath(workspace, 'uv.lock')
    await inputs.add('lockFile', lockFile)
    for (const name of [...manifestFiles, ...configurationFiles]) await inputs.add('manifest', joinPath(workspace, name))
    // Written by uv: `source = { editable = "packages/a" }`.
    for (const [, kind, path] of (await source.text(lockFile))!.matchAll(/\{ (editable|directory|path|virtual) = "([^"]+)" \}/g)) {
      const local = source.resolve(workspace, path!, lockFile)
      for (const name of manifestFiles) await inputs.add('manifest', joinPath(local, name))
      // The project itself is not a dependency, and a virtual package has no content.
      if (kind !== 'virtual' && local !== workspace && local !== root) await inputs.add('localPackage', local)
    }
    return true
  },

  async poetry(source, root, inputs) {
    const lockFile = joinPath(root, 'poetry.lock')
    const text = await source.text(lockFile)
    await inputs.add('lockFile', lockFile)
    if (text === undefined) await addPathDependencies(source, root, inputs)
    // Written by poetry.
    for (const [, path] of (text ?? '').matchAll(/^type = "(?:directory|file)"\nurl = "([^"]+)"/gm)) {
      await inputs.add('localPackage', source.resolve(root, path!, lockFile))
    }
    return text !== undefined
  },

  /** Fixed if each requirement has a hash: then pip requires one of everything, also of what they require. */
  async pip(source, root, inputs) {
    let isFixed = true
    const pending = [joinPath(root, 'requirements.txt')]
    const seen = new Set<string>()
    for (let path = pending.shift(); path !== undefined && seen.size < maxRequirementFiles; path = pending.shift()) {
      if (seen.has(path)) continue
      seen.add(path)
      await inputs.add('lockFile', path)
      const directory = path.split('/').slice(0, -1).join('/')
      for (const requirement of parseRequirements((await source.text(path)) ?? '')) {
        if (requirement.kind === 'file') pending.push(source.resolve(directory, requirement.path, path))
        // pip resolves paths of packages from its own directory.
        else if (requirement.kind === 'local') await inputs.add('localPackage', source.resolve(root, requirement.path, path))
        else if (requirement.kind === 'package' && !requirement.hasHash) isFixed = false
      }
    }
    return isFixed
  },
}

type Requirement = { kind: 'file' | 'local'; path: string } | { kind: 'package'; hasHash: boolean }

/** https://pip.pypa.io/en/stable/reference/requirements-file-format/ */
export function parseRequirements(text: string): Requirement[] {
  const requirements: Requirement[] = []
  for (const raw of text.replaceAll(/\\\r?\n/g, ' ').split(/\r?\n/)) {
    const line = raw.replace(/(^|\s)#.*$/, '').trim()
    if (line === '') continue
    const file = /^(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)/.exec(line)?.[1]
    const linked = /^(?:-e|--editable|-f|--find-links)[\s=]*(\S+)/.exec(line)?.[1]
    const direct =
      / @ (file:\S+)/.exec(line)?.[1] ??
      (/^(file:|\.{1,2}(\/|$)|[^\s=<>~!;[]+\/[^\s]*$|\S+\.(whl|tar\.gz|zip)$)/.test(line) ? line.split(/\s/)[0] : undefined)
    const local = linked ?? direct
    if (file !== undefined && !/^https?:/.test(file)) requirements.push({ kind: 'file', path: file })
    else if (local !== undefined && !/^(git|https?|ssh|hg|svn|bzr)[+:]/.test(local)) {
      requirements.push({ kind: 'local', path: local.replace(/^file:(\/\/)?/, '').replace(/\[[^\]]*\]$/, '') })
    } else if (!line.startsWith('-') || linked !== undefined) requirements.push({ kind: 'package', hasHash: /\s--hash[=\s]/.test(line) })
  }
  return requirements
}

/** Without a lock file: `{ path = "../lib" }` of uv and poetry. */
async function addPathDependencies(source: SourceFiles, root: string, inputs: InputList): Promise<void> {
  const manifest = joinPath(root, 'pyproject.toml')
  for (const [, path] of ((await source.text(manifest)) ?? '').matchAll(/\bpath\s*=\s*["']([^"']+)["']/g)) {
    await inputs.add('localPackage', source.resolve(root, path!, manifest))
  }
}
