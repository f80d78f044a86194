/**
 * Reads `::progress 3/12 text`, which a command prints to say how far it is. Anything else is undefined and belongs into the log.
 */
export function readProgressLine(line: string): { done: number; total: number; current?: string } | undefined {
  const match = /^::progress\s+(\d{1,9})\/(\d{1,9})(?:\s+(.*\S))?\s*$/.exec(line)
  if (!match) return undefined
  const [, done, total, current] = match
  return {
    done: Math.min(Number(done), Number(total)),
    total: Number(total),
    ...(current !== undefined && { current: current.slice(0, 200) }),
  }
}
