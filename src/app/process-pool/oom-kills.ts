import { machineOomKills, ownCgroupOomKills } from '../../execution/workspace/index.ts'

/** Processes that the kernel has killed for lack of memory: those of this process's cgroup, or of the whole machine. */
export type OomKillCount = { readonly kills: number; readonly scope: 'Cgroup' | 'Machine' }

/** Of the smallest scope that is counted here: a machine runs other programs, whose ends prove nothing about a worker. */
function readOomKills(): OomKillCount {
  const kills = ownCgroupOomKills()
  return kills === undefined ? { kills: machineOomKills(), scope: 'Machine' } : { kills, scope: 'Cgroup' }
}

/** Interval of the readings while there are workers. */
const intervalMs = 5_000
/** From an OOM kill to the end of the process: one with much memory takes a while. */
const windowMs = 10_000

/**
 * Whether a worker that SIGKILL has ended may have been killed for lack of memory. The kernel tells an unprivileged process only how many it has killed,
 * not which: the number must have risen shortly before. That of the machine also rises with programs of the Runs of other workers, so it counts
 * for a worker only that was alone in this time: no Run can make that of another one look like the cause.
 */
export class OomKills {
  readonly #read: () => OomKillCount
  readonly #nowMs: () => number
  #kills = 0
  #roseAtMs = Number.NEGATIVE_INFINITY
  #workers = 0
  /** When two workers were last there. */
  #sharedAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /** For tests: `read` is what the kernel reports, `nowMs` a monotonic clock. */
  constructor(read: () => OomKillCount = readOomKills, nowMs: () => number = () => performance.now()) {
    this.#read = read
    this.#nowMs = nowMs
  }

  /** Reports how many workers there are, whenever that changes. */
  setWorkers(count: number): void {
    if (count > 1 || this.#workers > 1) this.#sharedAtMs = this.#nowMs()
    // What was killed before the first worker is of no interest.
    if (this.#workers === 0 && count > 0) this.#kills = this.#read().kills
    this.#workers = count
    if (count > 0) this.#timer ??= setInterval(() => this.#poll(), intervalMs).unref()
    else {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  /** Of a worker that has just ended and is still counted. */
  mayHaveKilledWorker(): boolean {
    const { scope } = this.#poll()
    const sinceMs = this.#nowMs() - windowMs
    const isAlone = this.#workers === 1 && this.#sharedAtMs < sinceMs
    return this.#roseAtMs >= sinceMs && (scope === 'Cgroup' || isAlone)
  }

  #poll(): OomKillCount {
    const count = this.#read()
    if (count.kills > this.#kills) this.#roseAtMs = this.#nowMs()
    this.#kills = count.kills
    return count
  }
}
