import { readFileSync } from 'node:fs'

/** The operator's counters. */
export type Counters = {
  creates: number
  alreadyThere: number
  deletes: number
  componentStatusWrites: number
  kymaStatusWrites: number
  reconciles: number
  lastSuccessAt: number
}

export const newCounters = (): Counters => ({
  creates: 0,
  alreadyThere: 0,
  deletes: 0,
  componentStatusWrites: 0,
  kymaStatusWrites: 0,
  reconciles: 0,
  lastSuccessAt: 0,
})

/** Report of the operator to its parent, several times a second. */
export type Report = Counters & {
  type: 'report'
  kymas: number
  components: number
  succeeded: number
  queueDepth: number
  delayed: number
  rssMb: number
  peakRssMb: number
  cpuSeconds: number
  errors: number
  lastError: string | undefined
  renderedKb: number
}

/** Sent once, when all caches are filled. */
export type Synced = { type: 'synced'; seconds: number; objects: number }

export type FromOperator = Report | Synced | { type: 'resynced'; seconds: number }
export type ToOperator = { type: 'resync' } | { type: 'stop' }

/** What several replicas report together; of `ended` replicas only what has happened counts, and the peak of their memory. */
export function sumReports(replicas: readonly Report[], ended: readonly Report[]): Report {
  const sum = (field: NumericField) => replicas.reduce((total, report) => total + report[field], 0)
  const sumOfAll = (field: NumericField) => ended.reduce((total, report) => total + report[field], sum(field))
  return {
    type: 'report',
    creates: sumOfAll('creates'),
    alreadyThere: sumOfAll('alreadyThere'),
    deletes: sumOfAll('deletes'),
    componentStatusWrites: sumOfAll('componentStatusWrites'),
    kymaStatusWrites: sumOfAll('kymaStatusWrites'),
    reconciles: sumOfAll('reconciles'),
    lastSuccessAt: Math.max(...[...replicas, ...ended].map(({ lastSuccessAt }) => lastSuccessAt)),
    kymas: sum('kymas'),
    components: sum('components'),
    succeeded: sum('succeeded'),
    queueDepth: sum('queueDepth'),
    delayed: sum('delayed'),
    rssMb: sum('rssMb'),
    peakRssMb: Math.max(sum('peakRssMb'), ...ended.map(({ peakRssMb }) => peakRssMb)),
    cpuSeconds: sumOfAll('cpuSeconds'),
    errors: sumOfAll('errors'),
    lastError: [...replicas, ...ended].findLast(({ lastError }) => lastError !== undefined)?.lastError,
    renderedKb: sum('renderedKb'),
  }
}

type NumericField = { [Field in keyof Report]: Report[Field] extends number ? Field : never }[keyof Report]

/** CPU and memory of this process; MB are 10^6 bytes. */
export function ownUsage(): { rssMb: number; peakRssMb: number; cpuSeconds: number } {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return { ...memoryOf(process.pid), cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 }
}

/** Resident memory of a process now and at its peak. Outside Linux only this process's own is known, and the peak may include its parent's. */
export function memoryOf(pid: number): { rssMb: number; peakRssMb: number } {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    const mb = (name: string) => (Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN) * 1_024) / 1e6
    return { rssMb: mb('VmRSS'), peakRssMb: mb('VmHWM') }
  } catch {
    if (pid !== process.pid) return { rssMb: Number.NaN, peakRssMb: Number.NaN }
    return { rssMb: process.memoryUsage.rss() / 1e6, peakRssMb: (process.resourceUsage().maxRSS * 1_024) / 1e6 }
  }
}

/** CPU seconds that another process has used, user and system; NaN without /proc. */
export function cpuSecondsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // 100 ticks a second on every Linux that Node runs on.
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return Number.NaN
  }
}
