import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { type BackupSummary, writeAtomically } from '../../kubernetes/server/index.ts'
import { inspectStateFile } from '../../stores/state/state-copy.ts'
import { readTar, type TarEntry, writeTar } from '../tar.ts'
import { backupFiles } from './backup-files.ts'
import { type BackupKeys, encryptKeys } from './backup-keys.ts'
import { type BackupManifest, backupFormat, backupFormatVersion, manifestFile, type Omission, objectsOnlyReason } from './manifest.ts'
import { missingStates } from './missing-states.ts'

/** Whose states a copy has. */
export type StatesOrigin = NonNullable<BackupManifest['states']>['stores'] & { readonly key: string }

/**
 * Where each part of a backup comes from: writes it to a path. A text instead is why it is omitted. Without states, each Stack that has one is reported as
 * missing, unless the text is {@link objectsOnlyReason}.
 */
export type BackupSources = {
  objects(path: string): Promise<BackupSummary>
  /** Called after `objects`, so that the copy has every state that an object refers to. */
  states: ((path: string) => Promise<StatesOrigin>) | string
  logs: ((path: string) => Promise<void>) | string
  keys: { readonly keys: BackupKeys; readonly passphrase: string } | string
}

export type BackupResult = {
  readonly path: string
  readonly bytes: number
  readonly manifest: BackupManifest
  readonly missing: readonly string[]
}

/**
 * Writes a backup atomically: `path` is either as before, or a whole backup on disk. The parts are written next to it first, so twice the space is needed.
 * @throws what the sources throw.
 */
export async function createBackup(
  path: string,
  sources: BackupSources,
  { version, nowMs = Date.now() }: { version: string; nowMs?: number },
): Promise<BackupResult> {
  const work = mkdtempSync(`${path}.`)
  try {
    const at = (name: string) => join(work, name)
    const omitted: Omission[] = []
    const { objects, states, missing } = await copyDatabases(at, sources)
    const files: string[] = [backupFiles.objects]
    if (typeof sources.states === 'string') omitted.push({ what: 'states', reason: sources.states })
    else files.push(backupFiles.states)

    let logs: BackupManifest['logs']
    if (typeof sources.logs === 'string') omitted.push({ what: 'logs', reason: sources.logs })
    else {
      await sources.logs(at(backupFiles.logs))
      logs = { count: await countLogs(at(backupFiles.logs)) }
      files.push(backupFiles.logs)
    }

    let keys: BackupManifest['keys']
    if (typeof sources.keys === 'string') omitted.push({ what: 'keys', reason: sources.keys })
    else {
      writeFileSync(at(backupFiles.keys), await encryptKeys(sources.keys.keys, sources.keys.passphrase), { mode: 0o600 })
      keys = { names: sources.keys.keys.names }
      files.push(backupFiles.keys)
    }
    omitted.push(...neverIncluded)

    const manifest: BackupManifest = {
      ...{ format: backupFormat, formatVersion: backupFormatVersion, oarlock: version, createdAt: rfc3339(nowMs) },
      files: await Promise.all(files.map(async name => ({ name, size: statSync(at(name)).size, sha256: await digestOf(at(name)) }))),
      objects,
      ...(states && { states }),
      ...(logs && { logs }),
      ...(keys && { keys }),
      omitted,
    }
    await writeAtomically(
      path,
      async temporary => await pipeline(writeTar(entriesOf(manifest, work)), createWriteStream(temporary)),
      () => {},
    )
    return { path, bytes: statSync(path).size, manifest, missing }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** What no backup contains. */
const neverIncluded: readonly Omission[] = [
  { what: 'certificates', reason: 'a server that is restored elsewhere has its own: users need its kubeconfig, workers join again' },
  { what: 'audit log', reason: 'copy the directory audit/' },
]

type Databases = Pick<BackupManifest, 'objects' | 'states'> & { readonly missing: readonly string[] }

/** The objects first. A Stack that is deleted between the two copies has no state in the second: then both are made again, once. */
async function copyDatabases(at: (name: string) => string, sources: BackupSources, isRepeated = false): Promise<Databases> {
  const [objectsFile, statesFile] = [at(backupFiles.objects), at(backupFiles.states)]
  const { objects: count, revision, encrypted } = await sources.objects(objectsFile)
  const objects = { count, revision, encrypted: Object.fromEntries(encrypted) }
  if (typeof sources.states === 'string')
    return { objects, missing: sources.states === objectsOnlyReason ? [] : missingStates(objectsFile, new Map()) }
  const { key, id, generation } = await sources.states(statesFile)
  const { newestVersions, versions, orphans, plans, locks } = inspectStateFile(statesFile)
  const missing = missingStates(objectsFile, newestVersions)
  if (missing.length > 0 && !isRepeated) {
    for (const path of [objectsFile, statesFile]) rmSync(path)
    return await copyDatabases(at, sources, true)
  }
  const states = { stacks: newestVersions.size, versions, orphans, plans, locks, key, stores: { id, generation } }
  return { objects, states, missing }
}

function* entriesOf(manifest: BackupManifest, work: string): Generator<TarEntry> {
  const text = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)
  yield { name: manifestFile, size: text.length, content: [text] }
  for (const { name, size } of manifest.files) yield { name, size, content: createReadStream(join(work, name)) }
}

/** A log has a file of its lines, and others that describe it. */
async function countLogs(archive: string): Promise<number> {
  let logs = 0
  for await (const { name } of readTar(archive)) if (name.endsWith('.log')) logs++
  return logs
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
