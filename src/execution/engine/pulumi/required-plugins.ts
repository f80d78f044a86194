import { join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { RootDirectory } from '../../../kubernetes/util/index.ts'
import type { Deployment } from '../../../stores/pulumi/index.ts'
import type { StoredPackages } from '../../dependencies/index.ts'
import type { ProgramPackages } from './install-packages.ts'
import type { PulumiProject } from './project-file.ts'

/** A provider of a program or a state, which the CLI gets as a plugin of kind "resource". */
export type RequiredPlugin = {
  readonly name: string
  /** Undefined: the newest. */
  readonly version: string | undefined
  /** Where the CLI downloads it. Undefined: its default for this name. */
  readonly server: string | undefined
}

const maxPlugins = 100
const maxManifestBytes = 4 * 1024 * 1024
const maxNesting = 100
const nameSyntax = /^[a-z][a-z0-9]{0,49}(-[a-z0-9]{1,50}){0,5}$/i
const versionSyntax = /^\d{1,9}\.\d{1,9}\.\d{1,9}[0-9A-Za-z.+-]{0,100}$/
const serverSyntax = /^(https?|github|gitlab):\/\/[^\s"'\\]{1,500}$/

/**
 * What of `found` a command line may name, without duplicates. A plugin from a git repository is none of them: it is a source that is
 * compiled or executed.
 */
export function validPlugins(found: Iterable<{ name?: unknown; version?: unknown; server?: unknown }>): RequiredPlugin[] {
  const plugins = new Map<string, RequiredPlugin>()
  for (const { name, version, server } of found) {
    const number = typeof version === 'string' && version !== '' ? version.replace(/^v/, '') : undefined
    const url = typeof server === 'string' && server !== '' ? server : undefined
    if (typeof name !== 'string' || !nameSyntax.test(name) || name === 'pulumi') continue
    if (number !== undefined && !versionSyntax.test(number)) continue
    if (url !== undefined && !serverSyntax.test(url)) continue
    plugins.set(JSON.stringify([name, number, url]), { name, version: number, server: url })
  }
  return [...plugins.values()].slice(0, maxPlugins)
}

/** Those that a program names itself, before there is a state. */
export async function pluginsOfProgram(
  { runtime, document }: Pick<PulumiProject, 'runtime' | 'document'>,
  { stored }: Pick<ProgramPackages, 'stored'>,
): Promise<RequiredPlugin[]> {
  if (stored) return await pluginsOfPackages(stored)
  return runtime === 'yaml' ? pluginsOfYaml(document) : []
}

/** Those of the installed packages of a program, as the language hosts of the CLI find them. */
export async function pluginsOfPackages({ manager, trees }: StoredPackages): Promise<RequiredPlugin[]> {
  const found: Record<string, unknown>[] = []
  for (const { path } of trees) {
    const root = new RootDirectory(path)
    if (manager === 'go') await findInModules(root, '', found)
    else if (['pip', 'uv', 'poetry'].includes(manager)) await findInEnvironment(root, found)
    else await findInNodeModules(root, '', found, 0)
  }
  return validPlugins(found)
}

/** Those of the provider resources in a state, which a destruction needs too. */
export function pluginsOfState(deployment: Deployment): RequiredPlugin[] {
  const found = (deployment.resources ?? []).flatMap(({ type, inputs }) => {
    const [, name] = /^pulumi:providers:([^:]+)$/.exec(type ?? '') ?? []
    if (name === undefined) return []
    const own = isJsonObject(inputs) ? inputs : {}
    const internal = isJsonObject(own.__internal) ? own.__internal : {}
    // The package of a parameterized provider has another name and version than its plugin.
    if (internal.parameterization !== undefined) return []
    return [{ name, version: own.version ?? internal.version, server: own.pluginDownloadURL ?? internal.pluginDownloadURL }]
  })
  return validPlugins(found)
}

/** Those that a program in YAML names by its types and functions. `document` is its project file. */
export function pluginsOfYaml(document: unknown): RequiredPlugin[] {
  if (!isJsonObject(document)) return []
  const found: Record<string, unknown>[] = []
  const add = (token: unknown, options?: unknown) => {
    const [, name] = typeof token === 'string' ? (/^(?:pulumi:providers:)?([^:]+)/.exec(token) ?? []) : []
    const { version, pluginDownloadURL } = isJsonObject(options) ? options : {}
    if (name !== undefined) found.push({ name, version, server: pluginDownloadURL })
  }
  const { resources, plugins } = document
  if (isJsonObject(resources)) {
    for (const resource of Object.values(resources)) if (isJsonObject(resource)) add(resource.type, resource.options)
  }
  const visit = (value: unknown, depth: number): void => {
    if (depth > maxNesting || typeof value !== 'object' || value === null) return
    for (const [key, child] of Object.entries(value)) {
      const [, short] = /^fn::([^:]+):/.exec(key) ?? []
      if (short !== undefined) add(short)
      if (key === 'fn::invoke' && isJsonObject(child)) add(child.function, child.options)
      visit(child, depth + 1)
    }
  }
  visit(document, 0)
  // They are in directories of the source.
  const local = isJsonObject(plugins) && Array.isArray(plugins.providers) ? plugins.providers : []
  const localNames = new Set(local.map(plugin => (isJsonObject(plugin) ? plugin.name : undefined)))
  return validPlugins(found.filter(({ name }) => !localNames.has(name)))
}

async function readManifest(root: RootDirectory, path: string): Promise<Record<string, unknown> | undefined> {
  try {
    const text = await root.readText(path, { maxBytes: maxManifestBytes })
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    // Whatever it is, the CLI reports it.
    return undefined
  }
}

/** package.json with `"pulumi": { "resource": true }`. pnpm has the packages themselves in `.pnpm/<name>/node_modules`. */
async function findInNodeModules(root: RootDirectory, directory: string, found: Record<string, unknown>[], depth: number): Promise<void> {
  if (depth > maxNesting) return
  for (const { name, kind } of await root.list(directory)) {
    if (kind !== 'directory') continue
    const path = join(directory, name)
    if (name === '.pnpm') {
      for (const entry of await root.list(path))
        if (entry.kind === 'directory') await findInNodeModules(root, join(path, entry.name, 'node_modules'), found, depth + 1)
    } else if (name.startsWith('@')) await findInNodeModules(root, path, found, depth + 1)
    else if (!name.startsWith('.')) {
      const manifest = await readManifest(root, join(path, 'package.json'))
      const { pulumi } = manifest ?? {}
      if (isJsonObject(pulumi) && pulumi.resource === true && pulumi.parameterization === undefined) {
        const scoped = /^@pulumi\/(.+)$/.exec(`${manifest?.name}`)?.[1]
        found.push({ name: pulumi.name || scoped, version: pulumi.version || manifest?.version, server: pulumi.server })
      }
      await findInNodeModules(root, join(path, 'node_modules'), found, depth + 1)
    }
  }
}

async function addPluginFile(root: RootDirectory, path: string, found: Record<string, unknown>[], more: Record<string, unknown> = {}) {
  const manifest = await readManifest(root, path)
  if (manifest?.resource !== true || manifest.parameterization !== undefined) return
  const { name, version, server } = manifest
  found.push({ name: name || more.name, version: version || more.version, server })
}

/** `<environment>/lib/python3.x/site-packages/<package>/pulumi-plugin.json` */
async function findInEnvironment(root: RootDirectory, found: Record<string, unknown>[]): Promise<void> {
  for (const { name: version } of await root.list('lib')) {
    const packages = join('lib', version, 'site-packages')
    for (const { name, kind } of await root.list(packages))
      if (kind === 'directory') await addPluginFile(root, join(packages, name, 'pulumi-plugin.json'), found)
  }
}

/** `pulumi-plugin.json` in a module of a module cache, whose directory is `<path>@<version>`, in its `go` directory, or one below. */
async function findInModules(root: RootDirectory, directory: string, found: Record<string, unknown>[]): Promise<void> {
  for (const { name, kind } of await root.list(directory)) {
    const path = join(directory, name)
    if (kind !== 'directory' || path === 'cache') continue
    const [, version] = /@v?(\d+\.\d+\.\d+)[^/]*$/.exec(name) ?? []
    if (version === undefined) {
      if (path.split('/').length < 10) await findInModules(root, path, found)
      continue
    }
    // github.com/pulumi/pulumi-aws/sdk/v6@v6.1.0
    const more = { name: /^[^/]+\/[^/]+\/[^/-]+-([^/@]+)/.exec(path)?.[1], version }
    const below = async (parent: string) =>
      (await root.list(join(path, parent))).filter(entry => entry.kind === 'directory').map(entry => join(parent, entry.name))
    for (const place of ['', 'go', ...(await below('go')), ...(await below(''))])
      await addPluginFile(root, join(path, place, 'pulumi-plugin.json'), found, more)
  }
}
