import { isJsonObject } from '../../../kubernetes/object/index.ts'

const maxArchives = 20_000
/** What anyone may download: only this may become known to other trust domains. */
const publicRegistry = 'https://registry.npmjs.org/'

/** An archive that a lock file names. */
export type LockedArchive = {
  /** SHA-512 of the archive, in hexadecimal. */
  readonly digest: string
  /** According to the lock file it is from the public registry. */
  readonly isPublic: boolean
}

/** The archives of a package-lock.json or npm-shrinkwrap.json (lockfileVersion 2 or 3) that it names by their SHA-512. */
export function lockedArchives(text: string): LockedArchive[] {
  let lock: unknown
  try {
    lock = JSON.parse(text)
  } catch {
    return []
  }
  const packages = isJsonObject(lock) && isJsonObject(lock.packages) ? Object.values(lock.packages) : []
  const found = new Map<string, LockedArchive>()
  for (const entry of packages) {
    if (!isJsonObject(entry) || typeof entry.integrity !== 'string') continue
    const [, base64] = /(?:^|\s)sha512-([A-Za-z0-9+/]{86}==)(?:\s|$)/.exec(entry.integrity) ?? []
    if (base64 === undefined) continue
    const digest = Buffer.from(base64, 'base64').toString('hex')
    found.set(digest, { digest, isPublic: typeof entry.resolved === 'string' && entry.resolved.startsWith(publicRegistry) })
  }
  return [...found.values()].slice(0, maxArchives)
}
