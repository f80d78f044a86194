import { StatusError } from '../kubernetes/object/index.ts'
import { exitCodes } from './exit-codes.ts'

/** An error that is told to the user as it is: what is wrong, what to do (`hint`), and what the process exits with. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(message: string, options: { exitCode?: number; hint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.exitCode = options.exitCode ?? exitCodes.failed
    this.hint = options.hint
  }
}

export const usageError = (message: string, hint = 'oarlock --help shows the commands') =>
  new CliError(message, { exitCode: exitCodes.usage, hint })

export type Told = { message: string; details: string[]; hint: string | undefined; exitCode: number }

/** What to say about any error, and what to exit with. Each cause of a refused object gets its own line. */
export function formatError(error: unknown): Told {
  if (error instanceof CliError) return { message: error.message, details: [], hint: error.hint, exitCode: error.exitCode }
  if (error instanceof StatusError) return formatStatusError(error)
  // By its name: loading the client to ask would cost servers 2 MB.
  if (error instanceof Error && error.name === 'ConnectionError') {
    return {
      message: error.message,
      details: [],
      hint: 'start one with "oarlock up", or name another with --kubeconfig',
      exitCode: exitCodes.unreachable,
    }
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return { message: 'interrupted', details: [], hint: undefined, exitCode: exitCodes.interrupted }
  }
  if (error instanceof TypeError && /kubeconfig|KUBECONFIG/.test(error.message)) {
    return {
      message: error.message,
      details: [],
      hint: 'start a server with "oarlock up", or name a kubeconfig with --kubeconfig',
      exitCode: exitCodes.unreachable,
    }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { message, details: [], hint: undefined, exitCode: exitCodes.failed }
}

function formatStatusError(error: StatusError): Told {
  const { code, details } = error
  const causes = details?.causes ?? []
  const isInvalid = code === 422 && causes.length > 0
  const message = isInvalid ? `${details?.kind ?? 'object'} "${details?.name ?? ''}" is invalid` : error.message
  return {
    message,
    details: isInvalid ? causes.map(({ field, message }) => `${field}: ${message}`) : [],
    hint: hints[code],
    exitCode: code === 404 ? exitCodes.notFound : code >= 500 ? exitCodes.failed : exitCodes.refused,
  }
}

const hints: Record<number, string | undefined> = {
  401: 'the credentials of this kubeconfig are not accepted; was the data directory made anew?',
  403: 'the user of this kubeconfig may not do that',
  409: 'somebody else changed or owns it; look at it with "oarlock get … -o yaml" and try again (apply: --force takes fields over)',
  422: '"kubectl explain stack.spec" or docs/reference/ say what is allowed',
}
