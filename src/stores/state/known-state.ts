import { decideStateError, formatStateError } from './decide-state-error.ts'
import type { VersionInfo } from './state-types.ts'

type Version = Pick<VersionInfo, 'version' | 'journalEntries'>

/** Number of the newest accepted version of any kind; 0 without one. */
export const newestNumber = (versions: readonly Version[]): number => versions.reduce((newest, { version }) => Math.max(newest, version), 0)

/** Whether an update has not completed, or its journal could not be read. */
const hasJournal = (versions: readonly Version[]): boolean => versions.some(({ journalEntries }) => journalEntries !== undefined)

/** What the accepted versions of a state show of its errors: a Run requires the version `expected`. */
export function knownStateOf(expected: number, versions: readonly Version[]) {
  const error = decideStateError(expected, newestNumber(versions))
  return { error: error && { reason: error.reason, message: formatStateError(error) }, hasJournal: hasJournal(versions) }
}
