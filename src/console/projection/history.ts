import { type HistoryFacts, intervalSeries, type PoolHistoryFacts, type Scaling } from '../protocol/index.ts'

/** Numbers of the fleet at one moment, by the name of their series. Those of a pool begin with {@link poolPrefix}. */
export type HistorySample = Readonly<Record<string, number>>

/** What a history keeps, in the order of time. */
export type HistoryEntry = { readonly atMs: number; readonly values: HistorySample } | { readonly atMs: number; readonly scaling: Scaling }

/** How often the fleet is sampled, and for how long samples are kept: in full for an hour, then one of each minute for a day. */
const levels = [
  { everyMs: 10_000, count: 360 },
  { everyMs: 60_000, count: 1_440 },
] as const
const maxScalings = 500
/** Samples that are more intervals apart than this have a gap between them: the process did not run. */
const gapIntervals = 3

export const poolPrefix = (pool: string) => `pool/${pool}/`

type Level = {
  readonly everyMs: number
  readonly count: number
  readonly samples: { readonly atMs: number; readonly values: HistorySample }[]
}

/**
 * The bounded history that charts show (invariant 10): at most 1,800 samples and 500 changes of the size of pools. When the clock was set back, what is later than the present is
 * removed: charts show the time until now.
 */
export class History {
  readonly #levels: readonly [Level, Level] = [
    { ...levels[0], samples: [] },
    { ...levels[1], samples: [] },
  ]
  readonly #scalings: { readonly atMs: number; readonly scaling: Scaling }[] = []

  static readonly everyMs = levels[0].everyMs
  static readonly keptMs = levels[1].everyMs * levels[1].count

  add(entry: HistoryEntry): void {
    if ('scaling' in entry) {
      while ((this.#scalings.at(-1)?.atMs ?? 0) > entry.atMs + History.everyMs) this.#scalings.pop()
      this.#scalings.push(entry)
      if (this.#scalings.length > maxScalings) this.#scalings.shift()
      return
    }
    for (const level of this.#levels) addSample(level, entry)
  }

  /** Adds entries of the time before those that are kept. */
  prepend(entries: readonly HistoryEntry[]): void {
    const kept = [...this.entries()]
    for (const list of [...this.#levels.map(({ samples }) => samples), this.#scalings]) list.length = 0
    for (const entry of [...entries, ...kept]) this.add(entry)
  }

  /** Everything that is kept, so that another history that adds it has the same. */
  *entries(): Generator<HistoryEntry> {
    const [fine, coarse] = this.#levels
    const firstMs = fine.samples[0]?.atMs ?? Number.POSITIVE_INFINITY
    // The minute in which the fine samples begin is summed from them again.
    for (const sample of coarse.samples) if (minuteOf(sample.atMs) < minuteOf(firstMs)) yield sample
    yield* fine.samples
    yield* this.#scalings
  }

  /** The series of the last `minutes`; a series that a sample does not have is null there. */
  facts(nowMs: number, minutes: number): HistoryFacts {
    return seriesOf(this.#samples(nowMs, minutes), name => (name.startsWith(poolPrefix('').slice(0, -1)) ? undefined : name))
  }

  /** The series of one pool, by their names without its own, and the latest changes of its size. */
  poolFacts(nowMs: number, minutes: number, pool: string): PoolHistoryFacts {
    const prefix = poolPrefix(pool)
    const sinceMs = nowMs - minutes * 60_000
    return {
      ...seriesOf(this.#samples(nowMs, minutes), name => (name.startsWith(prefix) ? name.slice(prefix.length) : undefined)),
      scalings: this.#scalings.filter(({ atMs, scaling }) => scaling.pool === pool && atMs > sinceMs).map(({ scaling }) => scaling),
    }
  }

  #samples(nowMs: number, minutes: number): Level {
    const [fine, coarse] = this.#levels
    const level = minutes * 60_000 <= fine.everyMs * fine.count ? fine : coarse
    return { ...level, samples: level.samples.filter(({ atMs }) => atMs > nowMs - minutes * 60_000) }
  }
}

const minuteOf = (atMs: number) => Math.floor(atMs / levels[1].everyMs)
const isPerInterval = new Set<string>(intervalSeries)

/** Within one interval of a level the highest value counts, and numbers of an interval are summed. */
function addSample({ everyMs, count, samples }: Level, { atMs, values }: HistoryEntry & { readonly values: HistorySample }): void {
  // A clock that is corrected by less than an interval removes nothing.
  while ((samples.at(-1)?.atMs ?? 0) >= atMs + everyMs) samples.pop()
  const last = samples.at(-1)
  const interval = (ms: number) => Math.floor(ms / everyMs)
  if (last && interval(atMs) <= interval(last.atMs)) {
    const merge = (name: string, value: number, before: number) => (isPerInterval.has(name) ? value + before : Math.max(value, before))
    const merged = Object.entries(values).map(([name, value]) => [name, merge(name, value, last.values[name] ?? 0)])
    samples[samples.length - 1] = { atMs: last.atMs, values: { ...last.values, ...Object.fromEntries(merged) } }
    return
  }
  samples.push({ atMs, values })
  if (samples.length > count) samples.shift()
}

function seriesOf({ samples, everyMs }: Level, nameOf: (name: string) => string | undefined): HistoryFacts {
  const names = new Map<string, string>()
  for (const { values } of samples)
    for (const name of Object.keys(values)) {
      const shown = names.has(name) ? undefined : nameOf(name)
      if (shown !== undefined) names.set(name, shown)
    }
  const timesMs: number[] = []
  const series = new Map([...names].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name]) => [name, [] as (number | null)[]]))
  for (const { atMs, values } of samples) {
    const before = timesMs.at(-1)
    if (before !== undefined && atMs - before > gapIntervals * everyMs) {
      timesMs.push(before + everyMs)
      for (const list of series.values()) list.push(null)
    }
    timesMs.push(atMs)
    for (const [name, list] of series) list.push(values[name] ?? null)
  }
  return { everyMs, timesMs, series: Object.fromEntries([...series].map(([name, list]) => [names.get(name) as string, list])) }
}
