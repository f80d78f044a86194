import { createHash } from 'node:crypto'
import { closeSync, createReadStream, createWriteStream, existsSync, openSync, readSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { readTar, type TarPosition } from '../tar.ts'
import { type BackedUpFile, type BackupManifest, damaged, manifestFile, maxManifestBytes, notABackup, parseManifest } from './manifest.ts'

/** A backup whose files have been found, but not read. */
export type OpenBackup = { readonly path: string; readonly manifest: BackupManifest; readonly positions: ReadonlyMap<string, TarPosition> }

/** Whether a file is an archive, and not a database, which earlier versions wrote and which `restore --salvage` takes too. */
export function isArchive(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const block = Buffer.alloc(512)
    return readSync(file, block) === 512 && block.toString('latin1', 257, 262) === 'ustar'
  } finally {
    closeSync(file)
  }
}

/** Whether a file is a backup with keys, which need its passphrase. */
export const hasKeys = async (path: string): Promise<boolean> =>
  existsSync(path) && isArchive(path) && (await openBackup(path)).manifest.keys !== undefined

/** @throws {AppStartError} if the file is no backup, or not a whole one. */
export async function openBackup(path: string): Promise<OpenBackup> {
  const found = await Array.fromAsync(readTar(path)).catch((error: Error) => {
    throw damaged(path, error.message, error)
  })
  const [first] = found
  if (first?.name !== manifestFile || first.size > maxManifestBytes) throw notABackup(path)
  const manifest = parseManifest(await readText(path, first), path)
  const positions = new Map(found.map(position => [position.name, position]))
  for (const { name, size } of manifest.files) {
    if (positions.get(name)?.size !== size)
      throw damaged(path, `${name} must have ${size} bytes, it has ${positions.get(name)?.size ?? 'none'}`)
  }
  return { path, manifest, positions }
}

export async function readText(path: string, position: TarPosition): Promise<string> {
  return Buffer.concat(await Array.fromAsync(contentOf(path, position))).toString('utf8')
}

/** Reads a file of a backup, to `target` if it is passed. @throws {AppStartError} if its digest is not that in the manifest. */
export async function extract(backup: OpenBackup, { name, sha256 }: BackedUpFile, target?: string): Promise<void> {
  const hash = createHash('sha256')
  const content = async function* () {
    for await (const chunk of contentOf(backup.path, backup.positions.get(name)!)) {
      hash.update(chunk)
      yield chunk
    }
  }
  if (target === undefined) for await (const _ of content());
  else await pipeline(content(), createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true }))
  const digest = hash.digest('hex')
  if (digest !== sha256) throw damaged(backup.path, `${name} has the SHA-256 digest ${digest}, it must be ${sha256}`)
}

export function contentOf(path: string, { offset, size }: TarPosition): AsyncIterable<Buffer> | Iterable<Buffer> {
  return size === 0 ? [] : createReadStream(path, { start: offset, end: offset + size - 1 })
}
