import { readdirSync, readFileSync } from 'node:fs'
import { workerProcessesOf } from '../../test/support/processes.ts'

/** Memory in MB (10^6 bytes) while something happens. */
export type MemoryUse = {
  /** Resident memory of `oarlock up`. */
  controlPlane: { before: number; highest: number; after: number }
  /** Its proportional share (PSS): pages that it shares with workers are divided among them. */
  controlPlanePss: { before: number; highest: number; after: number }
  /** Of `oarlock up`, its workers, their supervisor and all programs of Runs together, PSS. */
  all: number
  /** Highest number of worker processes that existed at the same time. */
  workers: number
}

/** Samples the memory of a process and of the processes that belong to its data directory. */
export class MemorySampler {
  readonly #pid: number
  readonly #dataDir: string
  readonly #timers: NodeJS.Timeout[]
  readonly #rss: number[] = []
  readonly #pss: number[] = []
  #all = 0
  #workers = 0

  constructor(pid: number, dataDir: string) {
    this.#pid = pid
    this.#dataDir = dataDir
    this.#sample()
    this.#sampleAll()
    this.#timers = [setInterval(() => this.#sample(), 500), setInterval(() => this.#sampleAll(), 3_000)]
  }

  stop(): MemoryUse {
    for (const timer of this.#timers) clearInterval(timer)
    this.#sample()
    const use = (values: number[]) => ({ before: values[0]!, highest: Math.max(...values), after: values.at(-1)! })
    return { controlPlane: use(this.#rss), controlPlanePss: use(this.#pss), all: this.#all, workers: this.#workers }
  }

  #sample(): void {
    const { rss, pss } = memoryOf(this.#pid) ?? { rss: 0, pss: 0 }
    this.#rss.push(rss)
    this.#pss.push(pss)
  }

  #sampleAll(): void {
    const processes = processesOf(this.#pid, this.#dataDir)
    const all = processes.reduce((sum, { pid }) => sum + (memoryOf(pid)?.pss ?? 0), 0)
    this.#all = Math.max(this.#all, all)
    this.#workers = Math.max(this.#workers, processes.filter(({ kind }) => kind === 'worker').length)
  }
}

export type BenchProcess = { pid: number; kind: 'up' | 'worker' | 'supervisor' | 'program' }

/** `oarlock up` and the workers of its data directory, with all descendants. */
export function processesOf(up: number, dataDir: string): BenchProcess[] {
  const workers = new Set(workerProcessesOf(dataDir))
  const parents = new Map<number, number>()
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    const stat = read(`/proc/${pid}/stat`)
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (stat !== '' && state !== 'Z') parents.set(pid, Number(parent))
  }
  const isOurs = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (pid === up || workers.has(pid) || isOurs(parents.get(pid)))
  const kindOf = (pid: number): BenchProcess['kind'] => {
    if (pid === up) return 'up'
    if (workers.has(pid)) return 'worker'
    return read(`/proc/${pid}/cmdline`).includes('supervisor-main') ? 'supervisor' : 'program'
  }
  return [...parents.keys()].filter(isOurs).map(pid => ({ pid, kind: kindOf(pid) }))
}

function memoryOf(pid: number): { rss: number; pss: number } | undefined {
  const text = read(`/proc/${pid}/smaps_rollup`)
  const value = (name: string) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) * 1_024) / 1e6
  return text === '' ? undefined : { rss: value('Rss'), pss: value('Pss') }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
