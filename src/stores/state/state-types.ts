import type { InterruptedOperation } from '../pulumi/index.ts'
import type { Fence, UnlockClaim } from './decide-lock.ts'
import type { OrphanReason, WriteAuthor } from './decide-write.ts'
import type { LockHolder } from './lock-holder.ts'

/** Limits of a store (invariant 10), each with what happens when it is reached. */
export type StateLimits = {
  /** Accepted versions kept per stack and kind; the oldest are deleted first, the newest is always kept. Default 50. */
  versionsPerStack: number
  /** Orphaned versions kept per stack; the oldest are deleted first. Default 20. */
  orphansPerStack: number
  /** Stored bytes per stack (compressed, all kinds and orphans); the oldest are deleted first, the newest of a kind is always kept. Default 256 MiB. */
  bytesPerStack: number
  /** Plans kept per stack; the oldest are deleted first. Default 5. */
  plansPerStack: number
  /** Diffs kept per stack, one for each Run; the oldest are deleted first. Default 100, as many as a Stack can keep Runs. */
  diffsPerStack: number
  /** Stored bytes of the diffs per stack (compressed); the oldest are deleted first, the newest is always kept. Default 64 MiB. */
  diffBytesPerStack: number
  /** Uncompressed size of one version, plan or diff. A larger one is rejected with `TooLarge`. Default 64 MiB. */
  maxBytes: number
  /** Size of the database. A write beyond it is rejected with `QuotaExceeded`. Default 64 GiB. */
  totalBytes: number
  /** Entries of one journal. A batch beyond it is rejected with `TooLarge`. Default 1,000,000. */
  journalEntries: number
  /** Uncompressed bytes of a journal and of the state that it began with. A batch beyond it is rejected with `TooLarge`. Default 256 MiB. */
  journalBytes: number
  /** Size of one batch of journal entries. A larger one is rejected with `TooLarge`, and the CLI splits it. Default 16 MiB. */
  journalBatchBytes: number
  /** Bytes received and not yet on disk. A write beyond it is rejected with `Overloaded`. Default 256 MiB. */
  pendingBytes: number
}

export const defaultStateLimits: StateLimits = {
  versionsPerStack: 50,
  orphansPerStack: 20,
  bytesPerStack: 256 * 1024 * 1024,
  plansPerStack: 5,
  diffsPerStack: 100,
  diffBytesPerStack: 64 * 1024 * 1024,
  maxBytes: 64 * 1024 * 1024,
  totalBytes: 64 * 1024 * 1024 * 1024,
  journalEntries: 1_000_000,
  journalBytes: 256 * 1024 * 1024,
  journalBatchBytes: 16 * 1024 * 1024,
  pendingBytes: 256 * 1024 * 1024,
}

/**
 * `terraform`: an engine's state. `inventory`: the record of an engine without a state file. `pulumi`: a state of Pulumi, as `pulumi stack export` writes it.
 * `pulumi-journal`: rejected journal entries, `{"entries":[…]}`, which are only kept as orphans. Each kind has its own newest version.
 */
export type VersionKind = 'terraform' | 'inventory' | 'pulumi' | 'pulumi-journal'

export type VersionInfo = {
  /** Unique and increasing per stack over all kinds. Rejected writes get numbers too, so that a number identifies one content. */
  version: number
  kind: VersionKind
  epoch: number
  /** The Run's name, or `user:NAME` for a write of that user; `user` with the token of the Stack, which any user may have. */
  author: string
  /** Uncompressed bytes; 0 when the state was deleted. */
  size: number
  createdMs: number
  /** Set while it is a journal to which its Run still adds entries, and from which the content results; `size` is that of the entries then. */
  journalEntries?: number
}
export type OrphanInfo = VersionInfo & { reason: OrphanReason }
export type StoredVersion = VersionInfo & { bytes: Uint8Array; orphan: boolean }
export type StoredPlan = { digest: string; runName: string; createdMs: number; bytes: Uint8Array }
export type HeldLock = { holder: LockHolder; sinceMs: number }

export type WriteRequest = {
  stackUid: string
  author: WriteAuthor
  kind: VersionKind
  bytes: Uint8Array
  /** The content is stored as an orphan for this reason, even if the author holds the lock. */
  orphanReason?: OrphanReason | undefined
  /**
   * The content is a checkpoint of this update of the Run: it replaces the one before of the same update, with a higher number. Otherwise one update would
   * delete all older versions.
   */
  update?: number | undefined
  /** Of a user: the version becomes higher than this one, which Runs require (`decide-state-error.ts`). */
  expectedVersion?: number | undefined
}
/** A user accepts the newest state, although a Run has stored version `expectedVersion`. */
export type AcceptRequest = { stackUid: string; user: string | undefined; expectedVersion: number }

export type StateWriteResult =
  /** On disk and current; `version` is the newest one. Content that is already stored creates no version. */
  | { kind: 'accepted'; version: number }
  /** Not current: the content is stored as the orphaned version `orphan` (invariant 3). `holder` is the present lock holder, if any. */
  | { kind: 'rejected'; reason: OrphanReason; orphan: number; currentEpoch: number; holder?: LockHolder }

/** The newest state of Pulumi, without its content. `isFull`: no resource can be added (`decide-journal-size.ts`). */
export type NewestPulumi = { version: number; isFull: boolean }

/** Journal entries of one update of a Run. `update` is its number in the Run: a later one is higher. */
export type AppendRequest = {
  stackUid: string
  runName: string
  epoch: number
  update: number
  /** `{"entries":[…]}`, as the CLI sends it. */
  bytes: Uint8Array
  /** For messages about what this version of Oarlock does not understand. */
  cliVersion: string
  /** The batch is stored as an orphan for this reason, even if the Run holds the lock. */
  orphanReason?: OrphanReason | undefined
}
/**
 * `full`: there is no space for operations that begin. Results of other operations in the batch are stored: the CLI sends nothing that follows a request which
 * failed, and waits for the answer before an operation begins.
 */
export type AppendResult = StateWriteResult | { kind: 'full'; message: string }
export type CompleteRequest = Pick<AppendRequest, 'stackUid' | 'runName' | 'epoch' | 'update'>
export type CompleteResult = { kind: 'accepted'; version: number } | { kind: 'rejected'; reason: 'StaleEpoch'; currentEpoch: number }

/** What the state of Pulumi of a Stack has. */
export type PulumiFacts = {
  readonly resources: number
  /** Operations that had begun when the CLI ended: what became of their resources is not known. */
  readonly pendingOperations: number
  /** The first of them, at most 20. Unset: there are none. */
  readonly pending?: readonly InterruptedOperation[]
  /** Why the state cannot be read; the numbers are 0 then. */
  readonly unreadable?: string
}

export type LockRequest = {
  stackUid: string
  holder: LockHolder
  /** A holder that is known to have abandoned the lock (invariant 4). */
  abandonedHolder?: LockHolder
}
export type LockResult =
  /** `brokenHolder` is the holder whose abandoned lock was broken (invariant 4). */
  | { kind: 'granted'; brokenHolder?: LockHolder }
  | { kind: 'rejected'; reason: 'Held'; holder: LockHolder; sinceMs: number }
  | { kind: 'rejected'; reason: 'StaleEpoch'; currentEpoch: number }

export type UnlockRequest = {
  stackUid: string
  holder: UnlockClaim
  /** A holder that is known to have abandoned the lock: anyone may release it. */
  abandonedHolder?: LockHolder
}
export type UnlockResult = { kind: 'released' } | { kind: 'free' } | { kind: 'rejected'; holder: LockHolder }

export type PlanRequest = { stackUid: string; digest: string; runName: string; bytes: Uint8Array }

/** What the plan of a Run would change, as users read it. The store does not interpret `bytes`. */
export type DiffRequest = { stackUid: string; runName: string; bytes: Uint8Array }

/** With what a Run applies: the newest of a Stack is kept for its destruction. The store does not interpret `bytes`. */
export type ConfigurationRequest = { stackUid: string; epoch: number; bytes: Uint8Array }
export type ConfigurationResult = { kind: 'stored' } | { kind: 'rejected'; reason: 'StaleEpoch'; currentEpoch: number }

export type StateStats = {
  stacks: number
  versions: number
  orphans: number
  plans: number
  locks: number
  /** Journals of updates that have not completed. */
  journals: number
  /** Versions deleted by a limit, since the store was created. */
  droppedVersions: number
  droppedOrphans: number
  /** Size of the database, including free pages. */
  bytes: number
}

/** From then on the Stack's Runs are numbered after `lastEpoch`. `force`: although a Run holds the lock. */
export type FenceReset = { stackUid: string; lastEpoch: number; force: boolean }
export type FenceResetResult = { kind: 'reset'; previous: Fence; fence: Fence } | ({ kind: 'rejected'; reason: 'Held' } & HeldLock)

/** Which token a Stack has: `id` is random, and '' for the first token. The token before is valid until `previousUntilMs`. */
export type TokenGeneration = { id: string; previousId: string; previousUntilMs: number }
