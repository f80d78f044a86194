import { mkdir } from 'node:fs/promises'
import type { gitSecretKeys, StackSource } from '../../api/index.ts'
import { checkoutGit, gitRevision } from './git-source.ts'
import { inlineRevision, writeInline } from './inline-source.ts'
import { copyPath, pathRevision } from './path-source.ts'
import { SourceError } from './source-error.ts'
import type { GitCredentials, SourceOptions } from './source-options.ts'
import { validateSource } from './validate-source.ts'

/**
 * The current revision of the source: a digest of inline files, a digest of names, sizes and times below a path, or a commit of a
 * repository (from `ls-remote`; nothing is fetched).
 * @throws {SourceError}
 */
export async function resolveRevision(source: StackSource, options: SourceOptions): Promise<string> {
  assertValid(source)
  if (source.inline) return inlineRevision(source.inline.files)
  if (source.path) return pathRevision(source.path.path, options.allowPaths)
  return gitRevision(source.git!, options)
}

/**
 * Writes the source at `revision` to `directory`, which is created if necessary and must be empty. Resolves with the working directory:
 * `directory` itself, or the subdirectory that a git source names (the rest of the repository is written, too, so that `../modules`
 * works).
 * @throws {SourceError}
 */
export async function fetchSource(
  source: StackSource,
  revision: string,
  directory: string,
  options: SourceOptions,
): Promise<{ directory: string }> {
  assertValid(source)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  if (source.inline) await writeInline(source.inline.files, directory)
  else if (source.path) await copyPath(source.path.path, revision, directory, options.allowPaths)
  else return { directory: await checkoutGit(source.git!, revision, directory, options) }
  return { directory }
}

/**
 * Reads the credentials from the `data` (base64) of the Secret named in `spec.source.git.secretRef`.
 * @param keys of the whole Secret, for the message. Default: those of `data`.
 * @throws {SourceError} SourceAuthFailed when the Secret has none of the known keys.
 */
export function gitCredentials(
  data: Readonly<Record<string, string>>,
  secret: string,
  keys: readonly string[] = Object.keys(data),
): GitCredentials {
  const read = (key: (typeof gitSecretKeys)[number]) =>
    data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8')
  const credentials: GitCredentials = {
    username: read('username')?.trim(),
    password: read('password')?.replace(/\r?\n$/, ''),
    sshPrivateKey: read('ssh-privatekey'),
    knownHosts: read('known_hosts'),
  }
  if (credentials.password === undefined && credentials.sshPrivateKey === undefined) {
    const message = `Secret ${secret} has keys ${keys.join(', ') || 'none'}; it needs username and password (https), or ssh-privatekey and known_hosts (ssh)`
    throw new SourceError('SourceAuthFailed', 'spec.source.git.secretRef', message)
  }
  return credentials
}

function assertValid(source: StackSource): void {
  const [cause] = validateSource(source)
  if (cause) throw new SourceError('InvalidSource', cause.field, cause.message)
}
