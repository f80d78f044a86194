const firstMs = 500
const maxMs = 15_000

/** How long to wait before attempt `attempt` (0 is the first) to connect again, in milliseconds. `random` is in [0, 1). */
export const reconnectDelayMs = (attempt: number, random: number): number =>
  Math.round(Math.min(maxMs, firstMs * 2 ** attempt) * (0.5 + random / 2))
