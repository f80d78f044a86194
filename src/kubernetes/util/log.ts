/** The logger interface, a subset of pino's: fields first, then a constant message. Narrower needs take a `Pick` of it. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** A logger that adds `fields` to every line. */
  child(fields: { [name: string]: unknown }): Log
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}

/** Returns a thrown value as an Error; `throw 'text'` and the like keep the value as `cause`. */
export function coerceError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  return new Error(`a value that is not an Error was thrown: ${typeof thrown === 'string' ? thrown.slice(0, 500) : typeof thrown}`, {
    cause: thrown,
  })
}
