import { mkdir } from 'node:fs/promises'
import type { StackSource } from '../../api/index.ts'
import { checkoutGit, gitRevision } from './git-source.ts'
import { inlineRevision, writeInline } from './inline-source.ts'
import { copyPath, pathRevision } from './path-source.ts'
import { SourceError } from './source-error.ts'
import type { GitCredentials, SourceOptions } from './source-options.ts'
import { validateSource } from './validate-source.ts'

/**
 * What the source is right now: a digest of inline files, a digest of names, sizes and times of a path, a commit of a repository
 * (asked with `ls-remote`, nothing is fetched).
 * @throws {SourceError}
 */
export async function resolveRevision(source: StackSource, options: SourceOptions): Promise<string> {
  check(source)
  if (source.inline) return inlineRevision(source.inline.files)
  if (source.path) return pathRevision(source.path.path, options.allowPaths)
  return gitRevision(source.git!, options)
}

/**
 * Writes the source as it was at `revision` into `directory`, which is made if it is missing and must be empty. Resolves with the
 * directory to work in: `directory` itself, or the one that a git source names within it (the rest of the repository is there,
 * too, so that `../modules` works).
 * @throws {SourceError}
 */
export async function fetchSource(
  source: StackSource,
  revision: string,
  directory: string,
  options: SourceOptions,
): Promise<{ directory: string }> {
  check(source)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  if (source.inline) await writeInline(source.inline.files, directory)
  else if (source.path) await copyPath(source.path.path, revision, directory, options.allowPaths)
  else return { directory: await checkoutGit(source.git!, revision, directory, options) }
  return { directory }
}

/**
 * Reads what a Secret named in `spec.source.git.secretRef` holds; its `data` is base64.
 * @throws {SourceError} InvalidSource when none of the known keys is there.
 */
export function gitCredentials(data: Readonly<Record<string, string>>, secret: string): GitCredentials {
  const read = (key: string) => (data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8'))
  const credentials: GitCredentials = {
    username: read('username')?.trim(),
    password: read('password')?.replace(/\r?\n$/, ''),
    sshPrivateKey: read('ssh-privatekey'),
    knownHosts: read('known_hosts'),
  }
  if (credentials.password === undefined && credentials.sshPrivateKey === undefined) {
    const came = Object.keys(data).join(', ') || 'none'
    const why = `Secret ${secret} has keys ${came}; it needs username and password (https), or ssh-privatekey and known_hosts (ssh)`
    throw new SourceError('SourceAuthFailed', 'spec.source.git.secretRef', why)
  }
  return credentials
}

function check(source: StackSource): void {
  const [cause] = validateSource(source)
  if (cause) throw new SourceError('InvalidSource', cause.field, cause.message)
}
