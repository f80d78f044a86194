/** Parses `::progress 3/12 text`, with which a command reports its progress. Returns undefined for any other line, which belongs in the log. */
export function parseProgressLine(line: string): { done: number; total: number; current?: string } | undefined {
  const match = /^::progress\s+(\d{1,9})\/(\d{1,9})(?:\s+(.*\S))?\s*$/.exec(line)
  if (!match) return undefined
  const [, done, total, current] = match
  return {
    done: Math.min(Number(done), Number(total)),
    total: Number(total),
    ...(current !== undefined && { current: current.slice(0, 200) }),
  }
}
