import type { StateLimits } from './state-types.ts'

/** A journal with the batch that arrives. */
export type JournalSize = {
  readonly entries: number
  /** Uncompressed, of the entries and of the state that they begin with: what results has at most about as many. */
  readonly bytes: number
}

/** What the entries of a batch begin: an operation that adds a resource to the state (create, import, read), another one, or none. */
export type Begun = 'addition' | 'other' | 'none'

type Limits = Pick<StateLimits, 'journalEntries' | 'journalBytes' | 'maxBytes'>

/** The CLI sends the begin of an operation before the operation: rejected there, nothing has happened that the state does not have. */
const shareForBegins = 15 / 16
const shareForAdditions = 7 / 8

/** Above it, a state gets no more resources: a larger one cannot be written as a whole, by a user or by a CLI without a journal. */
export const additionLimit = ({ maxBytes }: Pick<Limits, 'maxBytes'>): number => Math.floor(maxBytes * shareForAdditions)

/**
 * Why a batch does not fit; undefined if it does. Results of operations are rejected only at the limits of the journal, and operations that begin earlier, so that
 * there is space for the results of those that are in flight. `resultBytes`: what base and journal result in, measured when it matters; undefined if it is not known.
 */
export function journalSizeError(size: JournalSize, begun: Begun, limits: Limits, resultBytes: () => number): string | undefined {
  const share = begun === 'none' ? 1 : shareForBegins
  const [maxEntries, maxBytes] = [Math.floor(limits.journalEntries * share), Math.floor(limits.journalBytes * share)]
  const reserve = begun === 'none' ? '' : ' before an operation begins'
  if (size.entries > maxEntries) return `the journal would have ${size.entries} entries, at most ${maxEntries} are allowed${reserve}`
  if (size.bytes > maxBytes) return `the state and its journal would have ${size.bytes} bytes, at most ${maxBytes} are allowed${reserve}`
  const limit = additionLimit(limits)
  if (begun !== 'addition' || size.bytes <= limit) return undefined
  const bytes = resultBytes()
  if (bytes <= limit) return undefined
  return `the state would have ${bytes} bytes, and above ${limit} no resource can be added; delete resources, or move some of them to another Stack`
}
