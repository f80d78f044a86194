import type { WorkerStatus } from '../../api/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { areInDifferentPartitions, exponentialDelayMs } from '../../kubernetes/util/index.ts'
import type { DrainReason } from './decide-step.ts'
import type { WorkerStatusPatch } from './lease/registration.ts'
import type { UnsavedStates } from './unsaved-states.ts'

/** A change is reported after this delay, so that short Runs do not cost a write each. Dispatch counts Runs by their assignment, not by this. */
export const reportDelayMs = 2_000
/** `idleSince` is reported again when it is off by this much: pools choose by it which workers to remove. */
const idleAccuracyMs = 30_000
/** The delay before a failed report is repeated. */
const retryBackoff = { minMs: 2_000, maxMs: 60_000 }

/** What a worker does now. */
export type WorkerActivity = {
  /** Keys of the Runs that it executes. */
  readonly runs: readonly string[]
  /** Wall clock; undefined while it executes a Run. */
  readonly idleSinceMs: number | undefined
  /** Why it drains; undefined: it does not. */
  readonly draining?: DrainReason | undefined
  /** Keys of the sources that it has cached. */
  readonly caches?: readonly string[]
  /** As in {@link UnsavedStates.status}. */
  readonly unsavedStates?: number | null | undefined
  /** Versions of the detected engines, null for one that was removed. Undefined: not detected, or reported at the registration. */
  readonly engines?: Readonly<Record<string, string | null>> | undefined
  /** The detected isolation levels; undefined as above. */
  readonly isolation?: WorkerStatus['isolation'] | undefined
  /** The detected networks; undefined as above. */
  readonly networks?: WorkerStatus['networks'] | undefined
}

/** Reports what a worker does: after a short delay, in order, the newest activity only, and nothing twice. */
export class WorkerStatusReporter {
  readonly #activity: () => WorkerActivity
  readonly #write: (status: WorkerStatusPatch) => Promise<void>
  readonly #onError: (error: unknown) => void
  /** Of the last status written; empty: unknown. */
  #writtenFingerprint = ''
  /** Number of Runs in the last status that was written; none at the registration. */
  #writtenRuns = 0
  /** Resource version of the Run that was started last. */
  #lastRunVersion: string | undefined
  #failures = 0
  #isClosed = false
  #writing: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param activity returns what the worker does now.
   * @param write writes a status.
   * @param onError receives the error of a failed write, which is retried.
   */
  constructor(activity: () => WorkerActivity, write: (status: WorkerStatusPatch) => Promise<void>, onError: (error: unknown) => void) {
    this.#activity = activity
    this.#write = write
    this.#onError = onError
  }

  /** Reports the activity soon. */
  schedule(): void {
    this.#reportIn(reportDelayMs)
  }

  /**
   * A Run has started. The dispatchers of other partitions know of it only by the status: it is reported now, if they could take its slot for a free one.
   * That is so when the Run before was of another partition, or the status has fewer Runs. Otherwise it is reported soon.
   * @param version of the Run. @param ownVersion of the Worker.
   */
  started(version: string, ownVersion: string | undefined): void {
    const isOfNext = areInDifferentPartitions(version, this.#lastRunVersion ?? ownVersion)
    const showsFreeSlot = areInDifferentPartitions(version, ownVersion) && this.#writtenRuns < this.#activity().runs.length
    this.#lastRunVersion = version
    if (isOfNext || showsFreeSlot) void this.report()
    else this.schedule()
  }

  #reportIn(ms: number): void {
    if (!this.#isClosed) this.#timer ??= setTimeout(() => void this.report(), ms)
  }

  /** Reports the activity now; resolves when the attempt has ended. */
  report(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing = this.#writing.then(async () => {
      const activity = this.#activity()
      const fingerprint = fingerprintOf(activity)
      if (fingerprint === this.#writtenFingerprint) return
      try {
        await this.#write(statusOf(activity))
        this.#writtenFingerprint = fingerprint
        this.#writtenRuns = activity.runs.length
        this.#failures = 0
      } catch (error) {
        // The write may have succeeded or not, so the written status is unknown.
        this.#writtenFingerprint = ''
        this.#onError(error)
        this.#failures += 1
        this.#reportIn(exponentialDelayMs(this.#failures, retryBackoff))
      }
    })
    return this.#writing
  }

  /** Starts no further report; resolves when the current one has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#writing
  }
}

function statusOf({
  runs,
  idleSinceMs,
  draining,
  caches = [],
  unsavedStates,
  engines,
  isolation,
  networks,
}: WorkerActivity): WorkerStatusPatch {
  return {
    phase: draining !== undefined ? 'Draining' : runs.length > 0 ? 'Busy' : 'Ready',
    runs: [...runs],
    // Null removes what an earlier report has set.
    idleSince: idleSinceMs === undefined ? null : rfc3339(idleSinceMs),
    reason: draining ?? null,
    ...(caches.length > 0 && { caches: [...caches] }),
    ...(unsavedStates !== undefined && { unsavedStates }),
    ...(engines && { engines: engines }),
    ...(isolation && { isolation }),
    ...(networks && { networks }),
  }
}

function fingerprintOf({ idleSinceMs, ...activity }: WorkerActivity): string {
  return JSON.stringify([activity, idleSinceMs === undefined ? null : Math.floor(idleSinceMs / idleAccuracyMs)])
}
