import { createHash } from 'node:crypto'
import {
  DeploymentError,
  interruptedOperations,
  isTooDeep,
  JournalBatchError,
  type JournalEntry,
  journalEntryKinds,
  parseJournalEntry,
  parseUntypedDeployment,
  type RawJournalEntry,
  replayJournal,
  splitJournalBatch,
  type UnreadableEntry,
  type UntypedDeployment,
} from '../pulumi/index.ts'
import { decideComplete, decideJournal, type UpdateId } from './decide-journal.ts'
import { additionLimit, type Begun, journalSizeError } from './decide-journal-size.ts'
import type { Encryption } from './encryption.ts'
import { type Journal, JournalTable } from './journal-table.ts'
import { ParsedJournals } from './parsed-journals.ts'
import type { StateFile } from './state-file.ts'
import { StateStoreError } from './state-store-error.ts'
import type { NewestPulumi, PulumiFacts, StateLimits, StoredVersion, VersionInfo } from './state-types.ts'
import type { VersionTable } from './version-table.ts'

/** Of the operations that were interrupted. */
const maxListedOperations = 20
/** Facts are kept of this many Stacks. */
const maxCachedFacts = 1_000
/** Of the entries of open journals that are kept in memory, as they were sent. */
const maxParsedBytes = 32 * 1024 * 1024

/**
 * States of Pulumi: the newest version and the open journal, which are one state (invariant 12: neither is read without the other). A journal is
 * compacted to the version whose number it has reserved when its update completes, and before anything else changes the state.
 */
export class PulumiState {
  readonly #versions: VersionTable
  readonly #journals: JournalTable
  readonly #encryption: Encryption
  readonly #limits: StateLimits
  /** By UID; of large states, what the journal of `version` resulted in when it had `journalBytes`. */
  readonly #measured = new Map<string, { version: number; journalBytes: number; bytes: number }>()
  /** By UID. */
  readonly #facts = new Map<string, CachedFacts>()
  readonly #parsed = new ParsedJournals(maxParsedBytes)

  constructor(file: StateFile, versions: VersionTable, encryption: Encryption, limits: StateLimits) {
    this.#versions = versions
    this.#journals = new JournalTable(file, encryption)
    this.#encryption = encryption
    this.#limits = limits
  }

  get openJournals(): number {
    return this.#journals.openCount
  }

  openJournal(stackUid: string): Journal | undefined {
    return this.#journals.open(stackUid)
  }

  /**
   * Splits a batch of entries and checks it against the limits and the entries that are stored. Nothing is written. A batch that is not allowed is only
   * split. Without space for operations that begin, only the others are prepared (`full`).
   * @throws {StateStoreError} `InvalidArgument`, `TooLarge`, `JournalConflict`, `JournalUnreadable`.
   */
  prepareAppend(stackUid: string, claim: UpdateId, bytes: Uint8Array, isAllowed: boolean): PreparedAppend {
    const entries = this.#split(bytes)
    const decision = isAllowed ? decideJournal(this.#journals.get(stackUid), claim) : 'closed'
    if (decision === 'closed') return { decision, entries }
    const current = this.#journals.open(stackUid)
    // The update before was cut off: what its entries result in is the base of this one.
    const compacted = decision === 'begin' && current ? this.#replay(stackUid, current) : undefined
    const isNew = (entry: RawJournalEntry) => {
      const stored = decision === 'append' && this.#journals.has(stackUid, entry)
      if (stored !== 'conflict') return !stored
      throw new StateStoreError('JournalConflict', `another entry is stored under sequenceID ${entry.sequenceId}`)
    }
    const added = entries.filter(isNew)
    const [storedEntries, storedBytes] = decision === 'append' && current ? [current.entries, current.bytes] : [0, 0]
    const baseBytes = compacted?.bytes.byteLength ?? this.#versions.newest(stackUid, 'pulumi')?.size ?? 0
    const sizeError = (batch: readonly RawJournalEntry[]) => {
      const addedBytes = bytesOf(batch)
      const size = { entries: storedEntries + batch.length, bytes: baseBytes + storedBytes + addedBytes }
      const resultBytes = () => (decision === 'append' && current ? this.#measure(stackUid, current) : baseBytes) + addedBytes
      return batch.length === 0 ? undefined : journalSizeError(size, begunBy(batch), this.#limits, resultBytes)
    }
    const full = sizeError(added)
    if (full === undefined) return { decision, entries: added, bytes: bytesOf(added), compacted }
    const results = added.filter(entry => !isBegin(entry))
    const error = results.length === added.length ? full : sizeError(results)
    if (error !== undefined) throw new StateStoreError('TooLarge', error)
    return { decision, entries: results, bytes: bytesOf(results), compacted, full }
  }

  /** Stores the entries; `version` is the number that a new journal reserves, `author` its Run. */
  append(stackUid: string, claim: UpdateId & { cliVersion: string }, append: PreparedAppend, version: number, nowMs: number): Journal {
    if (append.compacted) this.#storeResult(stackUid, append.compacted)
    const current = append.decision === 'append' ? this.#journals.open(stackUid) : undefined
    const { epoch, runName, update, cliVersion } = claim
    const journal: Journal = current ?? {
      ...{ epoch, runName, update, cliVersion, version, isOpen: true, entries: 0, bytes: 0, changedMs: nowMs },
      baseVersion: this.#versions.newest(stackUid, 'pulumi')?.version ?? 0,
    }
    this.#journals.insert(stackUid, journal, append.entries)
    const { entries, bytes } = journal
    const changed = { ...journal, entries: entries + append.entries.length, bytes: bytes + (append.bytes ?? 0), changedMs: nowMs }
    this.#journals.set(stackUid, changed)
    this.#parsed.append(stackUid, journal, changed, append.entries)
    return changed
  }

  /**
   * Compacts the journal of `claim`, and records that it is complete (`decide-journal.ts`). Returns the number of the newest version of kind `pulumi`.
   * @throws {StateStoreError} `JournalUnreadable`; nothing was written.
   */
  complete(stackUid: string, claim: UpdateId, mayWrite: boolean, nowMs: number): number {
    const decision = decideComplete(this.#journals.get(stackUid), claim, mayWrite)
    if (decision !== 'ended') this.compact(stackUid)
    const version = this.#versions.newest(stackUid, 'pulumi')?.version ?? 0
    if (decision !== 'close') return version
    const { epoch, runName, update } = claim
    const closed = { epoch, runName, update, isOpen: false, version, baseVersion: version }
    this.#journals.set(stackUid, { ...closed, cliVersion: '', entries: 0, bytes: 0, changedMs: nowMs })
    return version
  }

  /** Compacts the open journal, if there is one. @throws {StateStoreError} `JournalUnreadable`; nothing was written. */
  compact(stackUid: string): void {
    const journal = this.#journals.open(stackUid)
    if (journal) this.#storeResult(stackUid, this.#replay(stackUid, journal))
  }

  /** As {@link compact}, for a user who replaces the state: a journal that cannot be read is kept as an orphan with its number. */
  compactOrOrphan(stackUid: string, nowMs: number): void {
    const journal = this.#journals.open(stackUid)
    if (!journal) return
    try {
      this.compact(stackUid)
      return
    } catch (error) {
      if (!(error instanceof StateStoreError) || error.code !== 'JournalUnreadable') throw error
    }
    const bytes = Buffer.from(`{"entries":[${[...this.#journals.texts(stackUid, journal)].join(',')}]}`)
    const { version, epoch, runName: author } = journal
    const digest = this.#encryption.digest(bytes)
    const orphan = { stackUid, version, kind: 'pulumi-journal', orphan: 'JournalUnreadable', epoch, author, sequence: undefined } as const
    this.#versions.insert({ ...orphan, digest, bytes, createdMs: nowMs })
    this.#journals.close(stackUid, journal)
  }

  /** What the open journal and its base result in. @throws {StateStoreError} `JournalUnreadable` */
  read(stackUid: string, journal: Journal): StoredVersion {
    const { bytes } = this.#replay(stackUid, journal)
    return { ...this.infoOf(journal), size: bytes.byteLength, bytes, orphan: false }
  }

  /** The open journal as the version that it becomes. */
  infoOf({ version, epoch, runName: author, bytes: size, changedMs: createdMs, entries: journalEntries }: Journal): VersionInfo {
    return { version, kind: 'pulumi', epoch, author, size, createdMs, journalEntries }
  }

  /** Undefined without a state of Pulumi. */
  newest(stackUid: string): NewestPulumi | undefined {
    const journal = this.#journals.open(stackUid)
    const stored = this.#versions.newest(stackUid, 'pulumi')
    const limit = additionLimit(this.#limits)
    if (!journal) return stored && { version: stored.version, isFull: (stored.size ?? 0) > limit }
    const isSmall = (stored?.size ?? 0) + journal.bytes <= limit
    return { version: journal.version, isFull: !isSmall && this.#measure(stackUid, journal) > limit }
  }

  /** Undefined without a state of Pulumi. */
  facts(stackUid: string): PulumiFacts | undefined {
    const journal = this.#journals.open(stackUid)
    const version = journal?.version ?? this.#versions.newest(stackUid, 'pulumi')?.version
    if (version === undefined) return undefined
    const entries = journal?.entries ?? 0
    const cached = this.#facts.get(stackUid)
    if (cached?.version === version && cached.entries === entries) return cached.facts
    const facts = this.#readFacts(stackUid, journal)
    this.#setFacts(stackUid, { version, entries, facts })
    return facts
  }

  /** A transaction has failed: what is in memory may not be stored. */
  clearCaches(): void {
    for (const cache of [this.#parsed, this.#facts, this.#measured]) cache.clear()
    this.#journals.forgetCount()
  }

  #setFacts(stackUid: string, facts: CachedFacts): void {
    this.#facts.delete(stackUid)
    this.#facts.set(stackUid, facts)
    const oldest = this.#facts.size > maxCachedFacts ? this.#facts.keys().next().value : undefined
    if (oldest !== undefined) this.#facts.delete(oldest)
  }

  #readFacts(stackUid: string, journal: Journal | undefined): PulumiFacts {
    try {
      const state = journal ? this.#replayState(stackUid, journal) : this.#base(stackUid, undefined)
      return factsOf(state)
    } catch (error) {
      if (!(error instanceof StateStoreError) || error.code !== 'JournalUnreadable') throw error
      return { resources: 0, pendingOperations: 0, unreadable: error.message }
    }
  }

  #split(bytes: Uint8Array): RawJournalEntry[] {
    try {
      return splitJournalBatch(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    } catch (error) {
      const reason = error instanceof JournalBatchError ? error.message : 'the body is not UTF-8'
      throw new StateStoreError('InvalidArgument', `the journal entries cannot be stored: ${reason}`, { cause: error })
    }
  }

  /** At least as many bytes as base and journal result in. Replayed again only after the journal has grown by a part of the limit. */
  #measure(stackUid: string, journal: Journal): number {
    const measured = this.#measured.get(stackUid)
    const added = measured?.version === journal.version ? journal.bytes - measured.journalBytes : Number.POSITIVE_INFINITY
    if (measured && added <= additionLimit(this.#limits) / 64) return measured.bytes + added
    const { bytes } = this.#replay(stackUid, journal)
    this.#measured.set(stackUid, { version: journal.version, journalBytes: journal.bytes, bytes: bytes.byteLength })
    return bytes.byteLength
  }

  #base(stackUid: string, version: number | undefined): UntypedDeployment | undefined {
    if (version === 0) return undefined
    const stored = this.#versions.read(stackUid, 'pulumi', version)
    if (stored === undefined && version !== undefined)
      throw new StateStoreError('Corrupt', `version ${version}, the base of a journal, is missing`)
    if (stored === undefined || stored.bytes.byteLength === 0) return undefined
    try {
      return parseUntypedDeployment(Buffer.from(stored.bytes).toString())
    } catch (error) {
      throw new StateStoreError('JournalUnreadable', `version ${stored.version} is not a state of Pulumi: ${(error as Error).message}`)
    }
  }

  #replay(stackUid: string, journal: Journal): Replayed {
    const state = this.#replayState(stackUid, journal)
    return { journal, state, bytes: Buffer.from(JSON.stringify(state)) }
  }

  #replayState(stackUid: string, journal: Journal): UntypedDeployment {
    const base = this.#base(stackUid, journal.baseVersion)
    const entries = this.#entries(stackUid, journal)
    const { cliVersion, changedMs } = journal
    const version = cliVersion === '' ? (base?.deployment?.manifest?.version ?? '') : cliVersion
    const magic = version === '' ? '' : createHash('sha256').update(version).digest('hex')
    const result = replayJournal(base, entries, { manifest: { time: new Date(changedMs).toISOString(), magic, version } })
    if (result.kind === 'deployment') return result.result
    const cli = cliVersion === '' ? '' : ` (Pulumi ${cliVersion})`
    const at = `${result.message} (sequenceID ${result.sequenceId})`
    const message = `the journal of Run ${journal.runName}${cli} cannot be read by this version of Oarlock: ${at}`
    throw new StateStoreError('JournalUnreadable', message)
  }

  #entries(stackUid: string, journal: Journal): readonly (JournalEntry | UnreadableEntry)[] {
    const parsed = this.#parsed.get(stackUid, journal)
    if (parsed) return parsed
    const entries = Array.from(this.#journals.texts(stackUid, journal), text => parseJournalEntry(JSON.parse(text)))
    this.#parsed.set(stackUid, journal, entries)
    return entries
  }

  #storeResult(stackUid: string, { journal, state, bytes }: Replayed): void {
    this.#measured.delete(stackUid)
    this.#parsed.delete(stackUid)
    this.#setFacts(stackUid, { version: journal.version, entries: 0, facts: factsOf(state) })
    const { version, epoch, runName: author, changedMs: createdMs } = journal
    const row = { stackUid, version, kind: 'pulumi', orphan: null, epoch, author, sequence: undefined } as const
    this.#journals.close(stackUid, journal)
    this.#versions.insert({ ...row, digest: this.#encryption.digest(bytes), bytes, createdMs })
  }
}

const factsOf = (state: UntypedDeployment | undefined): PulumiFacts => {
  const deployment = state?.deployment ?? {}
  const interrupted = interruptedOperations(deployment)
  const pending = interrupted.slice(0, maxListedOperations).map(({ type, resource }) => ({ type, urn: resource.urn }))
  return { resources: deployment.resources?.length ?? 0, pendingOperations: interrupted.length, ...(pending.length > 0 && { pending }) }
}

/** Of the state with this version and number of entries. */
type CachedFacts = { version: number; entries: number; facts: PulumiFacts }

type Replayed = { journal: Journal; state: UntypedDeployment; bytes: Buffer }

export type PreparedAppend = {
  decision: ReturnType<typeof decideJournal>
  /** Those that are not stored yet. */
  entries: RawJournalEntry[]
  bytes?: number
  compacted?: Replayed | undefined
  /** Why operations of the batch may not begin. */
  full?: string
}

/** Entries that are not understood begin nothing: they are stored, and the state cannot be read. */
function begunBy(entries: readonly RawJournalEntry[]): Begun {
  let begun: Begun = 'none'
  for (const entry of entries) {
    if (!isBegin(entry)) continue
    if (additions.includes((entry.value.operation as { type?: unknown } | null | undefined)?.type)) return 'addition'
    begun = 'other'
  }
  return begun
}

const isBegin = ({ value }: RawJournalEntry): boolean => value.kind === journalEntryKinds.indexOf('Begin')
const bytesOf = (entries: readonly RawJournalEntry[]): number => entries.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)

/** Types of operations after which the state has one more resource; of `apitype.OperationType`. */
const additions: readonly unknown[] = ['creating', 'importing', 'reading']

/** @throws {StateStoreError} `InvalidArgument` unless it is a state of Pulumi. */
export function checkPulumiState(bytes: Uint8Array): void {
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
    parseUntypedDeployment(text)
    if (isTooDeep(text)) throw new DeploymentError('it is nested more than 500 deep')
  } catch (error) {
    if (!(error instanceof DeploymentError)) throw error
    throw new StateStoreError('InvalidArgument', `the content cannot be stored: ${error.message}`)
  }
}
