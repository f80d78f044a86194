import { workerExitCodes } from '../../execution/worker/index.ts'

/**
 * One line about an unexpected error, and where it was thrown. Without its message, which may contain a Secret of a Run or the worker's
 * token: the line is written to files that outlive the Run (invariant 9), and a masker may be what failed.
 */
export function describeFatalError(error: unknown): string {
  if (!(error instanceof Error)) return 'oarlock worker: unexpected error'
  const { name, message, stack = '', code } = error as NodeJS.ErrnoException
  const start = message === '' ? name : `${name}: ${message}`
  // Only what follows the message: it may contain lines like those of a stack.
  const frames = stack.startsWith(start) ? stack.slice(start.length).split('\n') : []
  const place = frames.filter(line => /^ {4}at /.test(line)).map(line => line.trim())
  const kind = /^[A-Za-z]{1,50}$/.test(name) ? name : 'error'
  const detail = typeof code === 'string' && /^[A-Z0-9_]{1,50}$/.test(code) ? ` (${code})` : ''
  return `oarlock worker: unexpected ${kind}${detail}${place.length > 0 ? ` ${place.slice(0, 8).join(' ')}` : ''}`
}

/** The exit code of a worker that an unexpected error ends: that of a system call, also one that caused it, says nothing about its Run. */
export function fatalExitCode(error: unknown): number {
  for (let one = error, depth = 0; one instanceof Error && depth < 5; one = one.cause, depth++) {
    const { errno, syscall, code } = one as NodeJS.ErrnoException
    if (typeof errno === 'number' && typeof syscall === 'string' && code !== undefined) return workerExitCodes.systemError
  }
  return workerExitCodes.unexpected
}

/** Makes this process print and end by {@link describeFatalError} where Node would print the message and the source line. */
export function handleFatalErrors(print: (line: string) => void): () => void {
  const onError = (error: unknown) => {
    print(describeFatalError(error))
    process.exit(fatalExitCode(error))
  }
  process.on('uncaughtException', onError)
  return () => void process.off('uncaughtException', onError)
}
