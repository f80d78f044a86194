import type { DiffLine } from '../../protocol/index.ts'

/** Lines around a change that are shown with it. */
const contextLines = 3
/** Longer changes are not compared line by line: all old lines are shown as removed, and all new ones as added. */
const maxCells = 4_000_000

/** What differs between two texts, line by line, with the lines around it. */
export function lineDiff(from: string, to: string): DiffLine[] {
  const [old, now] = [from.split('\n'), to.split('\n')]
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const same = (lines: readonly string[]): DiffLine[] => lines.map(text => ({ sign: ' ', text }))
  const changed = changesOf(old.slice(start, old.length - end), now.slice(start, now.length - end))
  return changed.length === 0 ? [] : folded([...same(old.slice(0, start)), ...changed, ...same(old.slice(old.length - end))])
}

/** By the longest common subsequence. */
function changesOf(old: readonly string[], now: readonly string[]): DiffLine[] {
  const width = now.length + 1
  if ((old.length + 1) * width > maxCells)
    return [...old.map(text => ({ sign: '-', text }) as const), ...now.map(text => ({ sign: '+', text }) as const)]
  const lengths = new Uint32Array((old.length + 1) * width)
  const at = (x: number, y: number) => lengths[x * width + y] as number
  for (let x = old.length - 1; x >= 0; x--)
    for (let y = now.length - 1; y >= 0; y--)
      lengths[x * width + y] = old[x] === now[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1))
  const lines: DiffLine[] = []
  let [x, y] = [0, 0]
  while (x < old.length || y < now.length) {
    if (x < old.length && y < now.length && old[x] === now[y]) {
      lines.push({ sign: ' ', text: old[x++] as string })
      y++
    } else if (x < old.length && (y === now.length || at(x + 1, y) >= at(x, y + 1))) lines.push({ sign: '-', text: old[x++] as string })
    else lines.push({ sign: '+', text: now[y++] as string })
  }
  return lines
}

/** Without the lines that are far from every change. */
function folded(lines: readonly DiffLine[]): DiffLine[] {
  const shown = new Set<number>()
  for (const [index, { sign }] of lines.entries())
    if (sign !== ' ') for (let near = index - contextLines; near <= index + contextLines; near++) shown.add(near)
  return lines.flatMap((line, index) => (shown.has(index) ? [line] : shown.has(index - 1) ? [{ sign: '…', text: '' } as const] : []))
}
