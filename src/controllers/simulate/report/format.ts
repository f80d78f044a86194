/**
 * A time in about three significant digits and one unit: `0.4s`, `13.8s`, `60s`, `12m`, `3.4h`. Not `formatDuration`, because columns of a table and
 * ticks of an axis need a short text, and tenths of seconds matter here.
 */
export function formatRoundedDuration(ms: number): string {
  if (ms < 99_950) return `${Number((ms / 1_000).toFixed(1))}s`
  if (ms < 99.5 * 60_000) return `${Math.round(ms / 60_000)}m`
  return `${Number((ms / 3_600_000).toFixed(1))}h`
}

/** `1,234` */
export const formatCount = (count: number): string => Math.round(count).toLocaleString('en-US')

/** `0.42`, `18.3`, `1,200` */
export const formatPrice = (price: number): string => (price < 10 ? price.toFixed(2) : price < 100 ? price.toFixed(1) : formatCount(price))
