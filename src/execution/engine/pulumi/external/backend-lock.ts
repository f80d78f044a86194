/** A lock file of a file or bucket backend, as the CLI reports it. */
export type BackendLock = {
  readonly url: string
  readonly user: string
  readonly host: string
  readonly pid: number
  /** In whole seconds. */
  readonly createdAtMs: number
}

/**
 * Why a command of the CLI did not get the lock of its stack. `locks`: file and bucket backends, undefined if one could not be read.
 * `update`: Pulumi Cloud, which does not report whose update is in progress.
 */
export type LockConflict =
  | { readonly kind: 'locks'; readonly locks: readonly BackendLock[] | undefined }
  | { readonly kind: 'update'; readonly message: string }

const locked = /^the stack is currently locked by (\d+) lock\(s\)/
const lockFile = /^(\S+): created by (.+)@([^@\s]+) \(pid (\d+)\) at (\d{4}-\d\d-\d\dT\S+)$/
const conflict = /^(\[409\] .*)$/

/**
 * Reads the errors of a command that failed. It takes the lock before anything of the stack is executed, so nothing else is reported before.
 * Undefined: it failed for another reason.
 */
export function parseLockConflict([first = '', ...others]: readonly string[]): LockConflict | undefined {
  const count = locked.exec(first)?.[1]
  if (count !== undefined) {
    const locks = others.flatMap(line => parseLockFile(line) ?? [])
    return { kind: 'locks', locks: locks.length === Number(count) ? locks : undefined }
  }
  const message = conflict.exec(first)?.[1]
  // Other conflicts are not about updates, such as too many stacks.
  const isUpdate = others.some(line => /^To learn more .*conflict/.test(line))
  return message !== undefined && isUpdate ? { kind: 'update', message } : undefined
}

function parseLockFile(line: string): BackendLock | undefined {
  const [, url, user, host, pid, created] = lockFile.exec(line) ?? []
  const createdAtMs = Date.parse(created ?? '')
  if (url === undefined || user === undefined || host === undefined || !Number.isFinite(createdAtMs)) return undefined
  // The CLI hides credentials in the URL; its parameters are of no use to a reader.
  return { url: url.replace(/\?.*$/, ''), user, host, pid: Number(pid), createdAtMs }
}
