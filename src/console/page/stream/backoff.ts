const firstMs = 500
const mostMs = 15_000

/** How long to wait before the next connection: many pages whose server restarts must not all come back in the same moment. @param random 0 to 1. */
export function backoffMs(failures: number, random: number): number {
  const most = Math.min(mostMs, firstMs * 2 ** failures)
  return most / 2 + (random * most) / 2
}
