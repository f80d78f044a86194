import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { KubeObject, NewObject } from '../kubernetes/object/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type Manifest = { object: NewObject & { apiVersion: string; kind: string; metadata: { name: string } }; from: string }

/**
 * The objects of YAML or JSON text. `values` replaces `${NAME}`; an unknown name is left unchanged, as Terraform has its own `${…}`.
 * @throws {CliError} with file and line, for what is not YAML or not an object.
 */
export async function parseManifests(text: string, from: string, values: Record<string, string> = {}): Promise<Manifest[]> {
  const { LineCounter, parseAllDocuments } = await import('yaml')
  const lines = new LineCounter()
  const manifests: Manifest[] = []
  for (const document of parseAllDocuments(fillIn(text, values), { lineCounter: lines, prettyErrors: false })) {
    const [error] = document.errors ?? []
    if (error) {
      const { line, col } = lines.linePos(error.pos[0])
      throw new CliError(`${from}:${line}:${col} is not valid YAML: ${error.message}`, { exitCode: exitCodes.usage })
    }
    const location = `${from}:${lines.linePos(document.range?.[0] ?? 0).line}`
    const value: unknown = document.toJS()
    if (value === null || value === undefined) continue
    for (const item of isList(value) ? value.items : [value]) manifests.push({ object: checkObject(item, location), from: location })
  }
  return manifests
}

const isList = (value: unknown): value is { items: unknown[] } =>
  typeof value === 'object' &&
  value !== null &&
  String((value as KubeObject).kind).endsWith('List') &&
  Array.isArray((value as { items?: unknown }).items)

function checkObject(value: unknown, location: string): Manifest['object'] {
  const problem = (field: string, got: unknown) =>
    new CliError(`${location}: ${field} must be a non-empty string, got ${JSON.stringify(got) ?? 'nothing'}`, {
      exitCode: exitCodes.rejected,
    })
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${location}: must be a Kubernetes object, got ${Array.isArray(value) ? 'an array' : JSON.stringify(value)}`, {
      exitCode: exitCodes.rejected,
    })
  }
  const object = value as Manifest['object']
  if (typeof object.apiVersion !== 'string' || object.apiVersion === '') throw problem('apiVersion', object.apiVersion)
  if (typeof object.kind !== 'string' || object.kind === '') throw problem('kind', object.kind)
  if (typeof object.metadata?.name !== 'string' || object.metadata.name === '') throw problem('metadata.name', object.metadata?.name)
  return object
}

const fillIn = (text: string, values: Record<string, string>) =>
  text.replace(/\$\{([A-Z][A-Z0-9_]*)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? values[name]! : whole))

const rank = ({ object: { kind } }: Manifest) => (kind === 'Namespace' ? 0 : kind === 'CustomResourceDefinition' ? 1 : 2)
/** Namespaces first, then definitions, then the rest; otherwise in the order of the files. */
export const inApplyOrder = (manifests: readonly Manifest[]): Manifest[] => manifests.toSorted((a, b) => rank(a) - rank(b))

/** The same in groups; objects of one group do not depend on each other. */
export function applyGroups(manifests: readonly Manifest[]): Manifest[][] {
  return [0, 1, 2].map(each => manifests.filter(manifest => rank(manifest) === each)).filter(group => group.length > 0)
}

/** Reads files, the YAML and JSON files of directories (not of their subdirectories), or stdin for `-`. */
export async function readManifests(paths: readonly string[], values: Record<string, string> = {}): Promise<Manifest[]> {
  if (paths.length === 0) throw usageError('-f is required', 'name a file, a directory, or - for stdin: oarlock apply -f FILE')
  const manifests: Manifest[] = []
  for (const path of paths) {
    if (path === '-') manifests.push(...(await parseManifests(await readAll(process.stdin), 'stdin', values)))
    else for (const file of await filesOf(path)) manifests.push(...(await parseManifests(await readFile(file, 'utf8'), file, values)))
  }
  if (manifests.length === 0)
    throw usageError(
      `no object found in ${paths.map(path => (path === '-' ? 'stdin' : path)).join(', ')}`,
      'files in a directory must end in .yaml, .yml or .json',
    )
  return inApplyOrder(manifests)
}

async function filesOf(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    return (await readdir(path))
      .filter(name => /\.(ya?ml|json)$/.test(name))
      .sort()
      .map(name => join(path, name))
  } catch (error) {
    throw new CliError(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`, { exitCode: exitCodes.usage, cause: error })
  }
}

async function readAll(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}
