import { labels, type Worker } from '../../../api/index.ts'

/** Time for others to end, which are deleted with the same request. */
export const collectForMs = 2_000
/** The names of more would make the URL long. */
export const maxTogether = 50
/** A Worker that remains for this long is deleted alone: it lacks the label, or the server did not accept the request. */
const aloneAfterMs = 5_000

export type EndedWorkersInput = {
  /** Undefined: it does not exist any more. */
  workerOf(name: string): Worker | undefined
  /** Whether it has Runs that have not ended, which are declared Lost first, or is being written. */
  isBusy(worker: Worker): boolean
  /** Monotonic clock in milliseconds. */
  readonly nowMs: number
}

export type EndedWorkersDecision = {
  /** Names of Workers to delete with one request. */
  readonly together: readonly string[]
  /** Workers to delete with a request of their own, at exactly these versions. */
  readonly alone: readonly Worker[]
  /** Time until the next decision is due; Infinity if none is. */
  readonly requeueAfterMs: number
}

/**
 * The Workers of Pods that have succeeded: all containers have ended with exit code 0, so nothing of them runs. A worker in a Pod of its own only exits after
 * its Runs, and its Worker is deleted here, together with others that end within {@link collectForMs}: in a long queue that is one write for dozens of
 * Runs instead of one for each. Until then such a Worker counts for the maximum of its pool, and gets no Runs.
 *
 * The request for several has no preconditions, so it selects by what cannot match another worker: each has its own name in the label
 * `oarlock.dev/worker`, which only the controller sets, and no name is used again (invariant 2). A Worker without it, such as one of an earlier version, is deleted alone.
 */
export class EndedWorkers {
  readonly #dueAtMs = new Map<string, number>()
  /** Those of which a deletion was requested. */
  readonly #requested = new Set<string>()

  add(name: string, nowMs: number): void {
    if (!this.#dueAtMs.has(name)) this.#dueAtMs.set(name, nowMs + collectForMs)
  }

  delete(name: string): void {
    this.#dueAtMs.delete(name)
    this.#requested.delete(name)
  }

  decide({ workerOf, isBusy, nowMs }: EndedWorkersInput): EndedWorkersDecision {
    const collected: { name: string; worker: Worker; dueAtMs: number }[] = []
    const alone: Worker[] = []
    let requeueAtMs = Number.POSITIVE_INFINITY
    for (const [name, dueAtMs] of this.#dueAtMs) {
      const worker = workerOf(name)
      if (!worker) this.delete(name)
      // A change of its Runs, or the outcome of the write, causes another decision.
      else if (isBusy(worker)) continue
      else if (!this.#requested.has(name) && worker.metadata.labels?.[labels.worker] === name) collected.push({ name, worker, dueAtMs })
      else if (nowMs >= dueAtMs) alone.push(worker)
      else requeueAtMs = Math.min(requeueAtMs, dueAtMs)
    }
    const isDue = collected.length >= maxTogether || collected.some(({ dueAtMs }) => nowMs >= dueAtMs)
    const due = isDue ? collected.slice(0, maxTogether) : []
    for (const { dueAtMs } of collected.slice(due.length)) requeueAtMs = Math.min(requeueAtMs, Math.max(dueAtMs, nowMs))
    const [first] = due
    // As many writes, and a stricter one.
    if (first && due.length === 1) alone.push(first.worker)
    for (const { metadata } of [...alone, ...due.map(({ worker }) => worker)]) {
      this.#requested.add(metadata.name)
      this.#dueAtMs.set(metadata.name, nowMs + aloneAfterMs)
      requeueAtMs = Math.min(requeueAtMs, nowMs + aloneAfterMs)
    }
    return { together: due.length > 1 ? due.map(({ name }) => name) : [], alone, requeueAfterMs: requeueAtMs - nowMs }
  }
}
