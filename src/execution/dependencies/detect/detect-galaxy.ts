import { posix } from 'node:path'
import { parse } from 'yaml'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { DependencyError } from '../dependency-error.ts'
import type { DetectedDependencies, DetectOptions } from '../managers/package-manager.ts'
import { joinPath } from '../source-files.ts'
import { InputList } from './input-list.ts'

const exactVersion = /^v?\d+\.\d+(\.\d+)*([-+.][0-9A-Za-z.-]+)?$/
const commit = /^[0-9a-f]{40}$/
const maxEntries = 200

type Entry = Readonly<Record<string, unknown>>

/**
 * Collections and roles that the requirements file lists. Every version must be exact, so that equal inputs mean equal content: a version number, or a
 * tag or commit of a repository. Files of the source are inputs themselves; an archive at a URL requires its checksum.
 * @throws {DependencyError} InvalidConfiguration
 */
export async function detectGalaxy({ source, directory, requirements }: DetectOptions): Promise<DetectedDependencies | undefined> {
  const file = requirements ?? 'requirements.yml'
  const path = source.resolve(directory, file, 'the requirements file')
  const text = await source.text(path)
  if (text === undefined) {
    if (requirements === undefined) return undefined
    throw invalid(`${path} does not exist in the source; correct spec.ansible.requirements`)
  }
  const { collections, roles } = readRequirements(text, path)
  if (collections.length + roles.length === 0) return undefined
  const inputs = new InputList(source)
  await inputs.add('lockFile', path)
  await inputs.add('configuration', joinPath(directory, 'ansible.cfg'))
  const checksums: Record<string, string> = {}
  for (const entry of collections) {
    const { name, kind, checksum } = checkCollection(entry, path)
    if (kind === 'file' || kind === 'dir') {
      const local = source.resolve(directory, name, path)
      const digest = await source.digest(local)
      if (digest === undefined) throw invalid(`${path} lists ${name}, which does not exist in the source`)
      if (checksum !== undefined && digest !== `sha256:${checksum}`)
        throw invalid(
          `${path}: the checksum of ${name} is ${digest}, expected sha256:${checksum}; compare the archive, then correct one of them`,
        )
      await inputs.add('localPackage', local)
    } else if (checksum !== undefined) checksums[archiveName(name, kind, entry)] = checksum
  }
  for (const entry of roles) checkRole(entry, path)
  return {
    ...{ manager: 'galaxy', root: directory, isLocked: true, inputs: inputs.list },
    galaxy: { file, collections: collections.length, roles: roles.length, checksums },
  }
}

function readRequirements(text: string, path: string): { collections: Entry[]; roles: Entry[] } {
  let document: unknown
  try {
    document = parse(text)
  } catch (error) {
    throw invalid(`${path} is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  const entriesOf = (value: unknown, field: string): Entry[] => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) throw invalid(`${path}: ${field} must be a list`)
    if (value.length > maxEntries) throw invalid(`${path}: ${field} has ${value.length} entries, at most ${maxEntries} are allowed`)
    return value.map((entry: unknown) => {
      if (isJsonObject(entry)) return entry
      throw invalid(`${path}: ${JSON.stringify(entry)} has no version; write an entry with name and version`)
    })
  }
  if (document === null || document === undefined) return { collections: [], roles: [] }
  // The oldest format: a list of roles.
  if (Array.isArray(document)) return { collections: [], roles: entriesOf(document, 'the file') }
  if (!isJsonObject(document)) throw invalid(`${path} must have the lists collections and roles`)
  return { collections: entriesOf(document.collections, 'collections'), roles: entriesOf(document.roles, 'roles') }
}

type CollectionKind = 'galaxy' | 'git' | 'url' | 'file' | 'dir'

function checkCollection(entry: Entry, path: string): { name: string; kind: CollectionKind; checksum: string | undefined } {
  const { name, type, version, checksum } = entry
  if (typeof name !== 'string' || name === '') throw invalid(`${path}: a collection has no name`)
  if (checksum !== undefined && !(typeof checksum === 'string' && /^sha256:[0-9a-f]{64}$/.test(checksum)))
    throw invalid(`${path}: the checksum of collection ${name} must be "sha256:" and 64 hexadecimal digits`)
  const digest = checksum?.slice('sha256:'.length)
  const kind = kindOf(name, type, path)
  if (kind === 'galaxy') requireExact(version, false, `collection ${name}`, path)
  if (kind === 'git') {
    requireExact(version, true, `collection ${name}`, path)
    if (digest !== undefined)
      throw invalid(`${path}: collection ${name} of a repository cannot have a checksum; its version can be a commit`)
  }
  if (kind === 'url' && digest === undefined)
    throw invalid(`${path}: collection ${name} requires a checksum, because it is an archive at a URL`)
  if (kind === 'dir' && digest !== undefined)
    throw invalid(`${path}: collection ${name} is a directory of the source, which has no checksum`)
  return { name, kind, checksum: digest }
}

function kindOf(name: string, type: unknown, path: string): CollectionKind {
  if (type === 'galaxy' || type === 'git' || type === 'url' || type === 'file' || type === 'dir') return type
  if (type !== undefined)
    throw invalid(`${path}: type ${JSON.stringify(type)} of ${name} is not supported; allowed: galaxy, git, url, file, dir`)
  if (/^(git\+|git@)/.test(name)) return 'git'
  if (/^https?:/.test(name)) return 'url'
  return /\.tar\.gz$/.test(name) ? 'file' : 'galaxy'
}

/** An archive has no checksum here, and its `version` selects nothing: a role comes from a Galaxy server or a repository. */
function checkRole({ name, src, scm, version, checksum }: Entry, path: string): void {
  const what = `role ${String(name ?? src)}`
  const location = src ?? name
  if (typeof location !== 'string') throw invalid(`${path}: a role has neither name nor src`)
  const isRepository = scm !== undefined || /^(git|hg)\+/.test(location) || /^https?:\/\/github\.com\/(?!.*\.tar\.gz$)/.test(location)
  if (!isRepository && !/^[\w-]+\.[\w-]+$/.test(location))
    throw invalid(
      `${path}: ${what} comes from ${location}, which no version fixes; use its repository (src: "git+https://…", with version), or put the role into roles/ of the source`,
    )
  if (checksum !== undefined) throw invalid(`${path}: ${what} cannot have a checksum; its version can be a commit`)
  requireExact(version, true, what, path)
}

function requireExact(version: unknown, mayBeCommit: boolean, what: string, path: string): void {
  const text = typeof version === 'number' ? String(version) : version
  if (typeof text === 'string' && (exactVersion.test(text) || (mayBeCommit && commit.test(text)))) return
  const found = version === undefined ? 'no version' : `version ${JSON.stringify(version)}, which is not exact`
  throw invalid(`${path}: ${what} has ${found}; set an exact one, such as ${mayBeCommit ? '"1.2.0" or a commit of 40 digits' : '"1.2.0"'}`)
}

/** As `ansible-galaxy collection download` names it. */
function archiveName(name: string, kind: CollectionKind, { version }: Entry): string {
  return kind === 'url' ? posix.basename(name) : `${name.replace('.', '-')}-${version}.tar.gz`
}

const invalid = (message: string) => new DependencyError('InvalidConfiguration', message, { retryable: false })
