import type { Profile } from '../profile.ts'
import { compareCosts, type WaitTarget } from '../recommend.ts'
import type { SimulationResult } from '../simulate-fleet.ts'
import { summaryLine } from './chart.ts'
import { formatPrice, formatRoundedDuration } from './format.ts'

const width = 860
const height = 360
const top = 96
const bottom = 300
const panels = [
  { left: 60, right: 410 },
  { left: 490, right: 840 },
] as const
const colors = {
  text: '#24292f',
  faint: '#6e7781',
  grid: '#d8dee4',
  change: '#0969da',
  check: '#8250df',
  target: '#cf222e',
  cost: '#1a7f37',
}

type Panel = (typeof panels)[number]

/** Draws the waits, the cost and the utilization by pool size. */
export function drawSvg(results: readonly SimulationResult[], stacks: number, profile: Profile, target: WaitTarget): string {
  const largest = results.at(-1)
  if (!largest) throw new RangeError('there are no results to draw')
  const [left, right] = panels
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="${colors.text}">`,
    `<title>${escaped(summaryLine(largest, stacks))}: wait and cost by pool size</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(20, 28, `Wait and cost by pool size: ${summaryLine(largest, stacks)}`, 'font-size="16" font-weight="600"'),
    text(left.left, 56, 'p99 wait for a worker', 'font-weight="600"'),
    text(left.left, 76, 'changes', `fill="${colors.change}"`),
    text(left.left + 60, 76, 'drift checks', `fill="${colors.check}"`),
    text(left.left + 140, 76, 'target', `fill="${colors.target}"`),
    ...waits(results, target, left),
    text(right.left, 56, `Cost of workers, ${profile.price.currency} per day`, 'font-weight="600"'),
    text(right.left, 76, `and their utilization; a Pod per Stack costs ${formatPrice(compareCosts(largest, stacks, profile).podPerStack)}`),
    ...costs(results, stacks, profile, right),
    ...panels.map(panel =>
      text((panel.left + panel.right) / 2, height - 18, 'maximum number of workers', `text-anchor="middle" fill="${colors.faint}"`),
    ),
    '</svg>',
  ].join('\n')}\n`
}

function waits(results: readonly SimulationResult[], target: WaitTarget, panel: Panel): string[] {
  const marks = [100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000]
  const longest = Math.max(target.changeMs, ...results.flatMap(({ wait }) => [wait.Change.p99Ms, wait.DriftCheck.p99Ms]))
  const high = marks.find(mark => mark >= longest) ?? longest
  const y = (ms: number) => bottom - ((bottom - top) * Math.log(Math.max(ms, 100) / 100)) / Math.log(high / 100)
  const line = (color: string, of: (result: SimulationResult) => number) => {
    const points = results.map((result, index) => [x(index, results.length, panel), y(of(result))] as const)
    return [
      `<polyline fill="none" stroke="${color}" stroke-width="2" points="${points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(' ')}"/>`,
      ...points.map(([px, py]) => `<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="3" fill="${color}"/>`),
    ]
  }
  return [
    ...marks.filter(mark => mark <= high).map(mark => grid(y(mark), formatRoundedDuration(mark), panel)),
    `<line x1="${panel.left}" x2="${panel.right}" y1="${y(target.changeMs).toFixed(1)}" y2="${y(target.changeMs).toFixed(1)}" stroke="${colors.target}" stroke-dasharray="4 3"/>`,
    ...sizes(results, panel),
    ...line(colors.check, ({ wait }) => wait.DriftCheck.p99Ms),
    ...line(colors.change, ({ wait }) => wait.Change.p99Ms),
  ]
}

function costs(results: readonly SimulationResult[], stacks: number, profile: Profile, panel: Panel): string[] {
  const high = Math.max(...results.map(result => compareCosts(result, stacks, profile).workers), Number.MIN_VALUE)
  const y = (cost: number) => bottom - ((bottom - top - 16) * cost) / high
  const barWidth = Math.min(40, (0.7 * (panel.right - panel.left)) / results.length)
  return [
    ...[0, high / 2, high].map(cost => grid(y(cost), formatPrice(cost), panel)),
    ...sizes(results, panel),
    ...results.flatMap((result, index) => {
      const { workers } = compareCosts(result, stacks, profile)
      const middle = x(index, results.length, panel)
      const left = middle - barWidth / 2
      return [
        `<rect x="${left.toFixed(1)}" y="${y(workers).toFixed(1)}" width="${barWidth.toFixed(1)}" height="${(bottom - y(workers)).toFixed(1)}" fill="${colors.cost}"/>`,
        text(middle, y(workers) - 4, `${Math.round(100 * result.utilization)}%`, 'text-anchor="middle" font-size="10"'),
      ]
    }),
  ]
}

function x(index: number, count: number, { left, right }: Panel): number {
  return left + ((index + 0.5) * (right - left)) / count
}

function sizes(results: readonly SimulationResult[], panel: Panel): string[] {
  return results.map(({ max }, index) =>
    text(x(index, results.length, panel), bottom + 18, String(max), 'text-anchor="middle" font-size="11"'),
  )
}

function grid(y: number, label: string, { left, right }: Panel): string {
  const line = `<line x1="${left}" x2="${right}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="${colors.grid}"/>`
  return line + text(left - 6, y + 4, label, `text-anchor="end" fill="${colors.faint}" font-size="11"`)
}

function text(atX: number, y: number, content: string, attributes = ''): string {
  return `<text x="${atX.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escaped(content)}</text>`
}

const escaped = (content: string) => content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
