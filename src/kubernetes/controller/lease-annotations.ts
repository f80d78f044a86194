import { coerceError, type Log } from '../util/log.ts'

/** What the holder of a Lease publishes about itself. */
export type LeaseAnnotations = () => Readonly<Record<string, string>>

/** The same function, but an error that it throws costs no Lease: it is logged, and nothing is published. */
export function safeAnnotations(annotations: LeaseAnnotations | undefined, log: Log): () => Readonly<Record<string, string>> | undefined {
  return () => {
    try {
      return annotations?.()
    } catch (error) {
      log.warn({ err: coerceError(error) }, 'the annotations of the Lease are not known: it is renewed without them')
      return undefined
    }
  }
}
