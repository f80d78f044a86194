import type { HistoryFacts } from '../protocol/index.ts'

/** Numbers of the fleet at one moment, by the name of their series. */
export type HistorySample = Readonly<Record<string, number>>

/** How often the fleet is sampled, and for how long samples are kept: in full for an hour, then one of each minute for a day. */
const levels = [
  { everyMs: 10_000, count: 360 },
  { everyMs: 60_000, count: 1_440 },
] as const

type Level = {
  readonly everyMs: number
  readonly count: number
  readonly samples: { readonly atMs: number; readonly values: HistorySample }[]
}

/** The bounded history that charts show (invariant 10): at most 1,800 samples. */
export class History {
  readonly #levels: readonly Level[] = levels.map(level => ({ ...level, samples: [] }))

  static readonly everyMs = levels[0].everyMs

  add(atMs: number, values: HistorySample): void {
    for (const { everyMs, count, samples } of this.#levels) {
      const last = samples.at(-1)
      if (last && atMs - last.atMs < everyMs) continue
      samples.push({ atMs, values })
      if (samples.length > count) samples.shift()
    }
  }

  /** The series of the last `minutes`; a series that a sample does not have is null there. */
  facts(nowMs: number, minutes: number): HistoryFacts {
    const [fine, coarse] = this.#levels as [Level, Level]
    const level = minutes * 60_000 <= fine.everyMs * fine.count ? fine : coarse
    const samples = level.samples.filter(({ atMs }) => atMs > nowMs - minutes * 60_000)
    const names = [...new Set(samples.flatMap(({ values }) => Object.keys(values)))].sort()
    return {
      timesMs: samples.map(({ atMs }) => atMs),
      series: Object.fromEntries(names.map(name => [name, samples.map(({ values }) => values[name] ?? null)])),
    }
  }
}
