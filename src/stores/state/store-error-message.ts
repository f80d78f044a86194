import type { StatusError } from '../../kubernetes/object/index.ts'

/** The message in an error response of a store, `{error:{code,message}}`, as a client of an API server gets it; undefined for a response of another server. */
export function storeErrorMessage(error: StatusError): string | undefined {
  const body = error.details?.causes?.[0]?.message ?? ''
  const [, message] = /"message":("(?:[^"\\]|\\.)*")/.exec(body) ?? []
  return message === undefined ? undefined : (JSON.parse(message) as string)
}
