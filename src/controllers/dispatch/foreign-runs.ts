import { isRejected, type Run, type Worker } from '../../api/index.ts'
import { noLoad, type WorkerLoad } from './worker-load.ts'

/** A worker reports what it executes within 2 s (`reportDelayMs` of the worker), and immediately when it rejects a Run. */
export const rejectedForMs = 3_000

/**
 * The load of Workers by Runs that this dispatcher did not assign: where several dispatchers share workers, `status.runs` of a Worker names the Runs of all.
 * That is late, so two dispatchers may use the same slot: the worker rejects one of the Runs, and counts as full until it has reported again.
 */
export class ForeignRuns {
  readonly #isOwn: (namespace: string) => boolean
  /** By worker that has rejected a Run: at which version of the Run, and until when it counts as full. */
  readonly #rejections = new Map<string, { readonly version: number; readonly untilMs: number }>()

  /** @param isOwn whether Runs of this namespace are those of this dispatcher. */
  constructor(isOwn: (namespace: string) => boolean) {
    this.#isOwn = isOwn
  }

  /** Takes a Run that has ended. Returns the name of its worker if that has rejected it, and counts as full now. */
  runEnded(run: Run, nowMs: number): string | undefined {
    const { workerName } = run.spec
    if (workerName === undefined || !isRejected(run)) return undefined
    this.#rejections.set(workerName, { version: Number(run.metadata.resourceVersion), untilMs: nowMs + rejectedForMs })
    return workerName
  }

  /** A version of the Worker that is newer than its rejection has what it executes. */
  workerChanged({ metadata }: Worker): void {
    const rejection = this.#rejections.get(metadata.name)
    if (rejection && Number(metadata.resourceVersion) > rejection.version) this.#rejections.delete(metadata.name)
  }

  /** How many foreign Runs the Worker has that an earlier version of it does not have. */
  newOf(before: Worker, { status }: Worker): number {
    const known = before.status?.runs ?? []
    return (status?.runs ?? []).filter(key => this.#isForeign(key) && !known.includes(key)).length
  }

  workerDeleted(name: string): void {
    this.#rejections.delete(name)
  }

  /** The load of the Worker: `own`, and that by foreign Runs. The resources that those request are not known. */
  add(worker: Worker, own: WorkerLoad | undefined): WorkerLoad | undefined {
    const { slots } = worker.spec
    const foreign = this.#rejections.has(worker.metadata.name)
      ? slots
      : (worker.status?.runs ?? []).filter(key => this.#isForeign(key)).length
    if (foreign === 0) return own
    const { active, total, ...resources } = own ?? noLoad
    return { ...resources, active: active + foreign, total: total + foreign }
  }

  /** The workers that count as full no longer, although they have not reported again. */
  expire(nowMs: number): readonly string[] {
    const expired = [...this.#rejections].flatMap(([name, { untilMs }]) => (untilMs <= nowMs ? [name] : []))
    for (const name of expired) this.#rejections.delete(name)
    return expired
  }

  /** When {@link expire} is due next; Infinity if it is not. */
  nextMs(): number {
    return Math.min(...[...this.#rejections.values()].map(({ untilMs }) => untilMs))
  }

  #isForeign(key: string): boolean {
    return !this.#isOwn(key.slice(0, key.indexOf('/')))
  }
}
