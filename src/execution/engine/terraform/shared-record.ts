import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'
import type { ContentStore } from '../../workspace/index.ts'
import type { WantedProvider } from './download-provider.ts'

/** A selected version is valid for this long: then the engine asks the registry again for a newer one. */
const selectionMs = 60_000
/** After this number of failures within this time, Runs no longer wait for each other: each lets its own engine report the problem. */
const failureLimit = { count: 2, withinMs: 30_000 }
/** The newest are kept. */
const maxPackages = 100
const maxSelections = 100

/**
 * What the Runs of a trust domain know about one provider on one platform. Only downloads that depend on no Stack are in it, so every Run of
 * the domain may use them. Not what a Stack has downloaded itself.
 */
export type SharedRecord = {
  /** `h1:` checksums by version, the newest last. */
  packages: Record<string, string>
  /** What was selected last by {@link selectionName}; no checksum: it needs no cache, because a mirror serves it unpacked. */
  selections: Record<string, { version: string; checksum?: string; atMs: number }>
  failures: Record<string, number[]>
}

export const emptyRecord = (): SharedRecord => ({ packages: {}, selections: {}, failures: {} })

/** Equal for Runs that accept the same packages: those with the same constraint, or with the same version and checksums in their lock files. */
export function selectionName({ constraint, lock }: WantedProvider): string {
  return lock ? `= ${lock.version} ${sha256(JSON.stringify([...lock.hashes].sort()))}` : constraint
}

export async function readSharedRecord(store: ContentStore, name: string): Promise<SharedRecord> {
  const text = await store.readRecord(name)
  const record: unknown = text === undefined ? undefined : JSON.parse(text)
  return isJsonObject(record) ? { ...emptyRecord(), ...record } : emptyRecord()
}

/** What was selected, while it is valid: without limit if a lock file selected it. */
export function validSelection(
  record: SharedRecord,
  wanted: WantedProvider,
  nowMs: number,
): SharedRecord['selections'][string] | undefined {
  const found = record.selections[selectionName(wanted)]
  if (!found) return undefined
  const ageMs = nowMs - found.atMs
  return wanted.lock || (ageMs >= 0 && ageMs < selectionMs) ? found : undefined
}

export function hasFailedOften({ failures }: SharedRecord, wanted: WantedProvider, nowMs: number): boolean {
  return recentFailures(failures[selectionName(wanted)], nowMs).length >= failureLimit.count
}

export function withFailure(record: SharedRecord, wanted: WantedProvider, nowMs: number): SharedRecord {
  const name = selectionName(wanted)
  return {
    ...record,
    failures: limited({ ...record.failures, [name]: [...recentFailures(record.failures[name], nowMs), nowMs] }, maxSelections),
  }
}

/** Of two packages of one version, one that a lock file names does not replace the other. Without a lock file a new one is downloaded only if the other was evicted. */
export function withSelection(
  record: SharedRecord,
  wanted: WantedProvider,
  { version, checksum }: { version: string; checksum: string | undefined },
  nowMs: number,
): SharedRecord {
  const name = selectionName(wanted)
  const { [name]: _, ...selections } = record.selections
  const { [name]: __, ...failures } = record.failures
  const { [version]: earlier, ...packages } = record.packages
  const known = wanted.lock ? (earlier ?? checksum) : (checksum ?? earlier)
  return {
    packages: limited({ ...packages, ...(known !== undefined && { [version]: known }) }, maxPackages),
    selections: limited({ ...selections, [name]: { version, ...(checksum !== undefined && { checksum }), atMs: nowMs } }, maxSelections),
    failures,
  }
}

const recentFailures = (failures: readonly number[] = [], nowMs: number) =>
  failures.filter(atMs => Math.abs(nowMs - atMs) < failureLimit.withinMs)

/** The last entries. */
const limited = <T>(entries: Record<string, T>, max: number): Record<string, T> => Object.fromEntries(Object.entries(entries).slice(-max))
