/** Handles the rejection of a file operation: `value` for a path that does not exist (ENOENT), and any other error is thrown again. */
export function ifMissing<T>(value: T): (error: unknown) => T {
  return error => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return value
    throw error
  }
}
