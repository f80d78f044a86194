import { ConnectionError } from '../../../src/kubernetes/client/index.ts'
import { StatusError } from '../../../src/kubernetes/object/index.ts'

/** What names a partition that does not answer, or home. */
const named = /partition "[^"]+"|partitions? \w|home/

/**
 * Whether a client may get this error while partitions fail (docs/partitions.md): 503 that names a partition, 410, a connection that ends, or the end of its own
 * patience.
 */
export function isDocumented(error: unknown): boolean {
  if (error instanceof StatusError) return error.code === 410 || (error.code === 503 && named.test(error.message))
  if (error instanceof ConnectionError) return true
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')
}

export const describeError = (error: unknown): string =>
  error instanceof StatusError ? `${error.code} ${error.reason}: ${error.message}` : String(error)
