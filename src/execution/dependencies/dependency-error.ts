import { openFilesError } from '../../kubernetes/util/index.ts'

/** For machines: the worker writes it to `status.reason` of the Run. */
export type DependencyErrorReason = 'InvalidConfiguration' | 'PackageManagerNotFound' | 'DependencyInstallFailed' | 'DependencyStoreFailed'

/** `message` is written for the author of the Stack. `retryable` is false when the same inputs will fail in the same way. */
export class DependencyError extends Error {
  override readonly name = 'DependencyError'
  readonly reason: DependencyErrorReason
  readonly retryable: boolean

  constructor(reason: DependencyErrorReason, message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.reason = reason
    this.retryable = options.retryable
  }
}

/** The error of the store at `directory`, with what an operator can do; undefined for one that has nothing to do with the machine. */
export function toStoreError(error: unknown, directory: string): DependencyError | undefined {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  const problem =
    openFilesError(error) ??
    (code === 'ENOSPC' ? `the disk of ${directory} is full: free some space, or reduce OARLOCK_DEPENDENCY_CACHE_SIZE` : undefined) ??
    (code === 'EDQUOT' ? `the quota of the disk of ${directory} is exceeded: free some space, or raise it` : undefined) ??
    (code === 'EROFS' ? `${directory} is on a read-only file system: set OARLOCK_CACHE_DIR to another directory` : undefined) ??
    (code === 'EACCES' || code === 'EPERM' ? (error as Error).message : undefined)
  if (problem === undefined) return undefined
  return new DependencyError('DependencyStoreFailed', `dependencies cannot be stored: ${problem}`, { retryable: true, cause: error })
}
