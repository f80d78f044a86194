/**
 * Draws the figures of `npm run bench -- kyma-curves --json docs/images/kyma-curves.json` as charts for
 * docs/operators-at-scale.md: one SVG per setting, next to the figures. `node scripts/draw-kyma-curves.ts`
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

type Row = Record<string, string | number>
type Panel = { column: string; title: string; line?: { at: number; text: string } }
type Picture = { setting: string; title: string; unit: string; shape: 'line' | 'bars'; panels: Panel[] }

const floor = { at: 13.4, text: 'the slowest component alone: 13.4 s' }
const seconds: Panel = { column: 'seconds', title: 'seconds until all succeeded', line: floor }
const cpu: Panel = { column: 'operator CPU s', title: 'CPU seconds of the operator' }
const memory: Panel = { column: 'operator RSS MB', title: 'operator RSS at the end, MB' }

const pictures: Picture[] = [
  { setting: 'rate-limit', title: 'Request rate limit', unit: 'requests a second', shape: 'line', panels: [seconds, cpu] },
  {
    setting: 'backoff',
    title: 'Backoff, when one write in ten fails',
    unit: 'wait after the first failure',
    shape: 'line',
    panels: [seconds, { column: 'failures', title: 'failed reconciles' }],
  },
  {
    setting: 'resync',
    title: 'Resync',
    unit: 'interval, ms',
    shape: 'line',
    panels: [{ column: 'reconciles', title: 'reconciles' }, cpu],
  },
  {
    setting: 'predicates',
    title: 'Predicates and collecting changes',
    unit: '',
    shape: 'bars',
    panels: [
      { column: 'Kyma status writes', title: 'status writes of Kymas' },
      { column: 'reconciles', title: 'reconciles' },
    ],
  },
  { setting: 'rendering', title: 'Rendering', unit: '', shape: 'bars', panels: [cpu, memory] },
  { setting: 'workers', title: 'Concurrency', unit: 'components reconciled concurrently', shape: 'line', panels: [seconds, cpu] },
  { setting: 'hot', title: 'Packed cache', unit: 'objects kept parsed', shape: 'line', panels: [memory, cpu] },
]

const width = 860
const height = 350
const frame = { left: 56, right: 24, top: 94, bottom: 58 }
const gap = 40
const ink = { text: '#24292f', faint: '#6e7781', grid: '#d8dee4', mark: '#0969da', floor: '#cf222e' }

const directory = join(import.meta.dirname, '..', 'docs', 'images')
const { rows } = JSON.parse(readFileSync(join(directory, 'kyma-curves.json'), 'utf8')) as { rows: Row[] }
for (const picture of pictures) {
  const own = rows.filter(({ setting }) => setting === picture.setting)
  if (own.length === 0) throw new RangeError(`kyma-curves.json has no rows of the setting ${picture.setting}: run the bench without --only`)
  writeFileSync(join(directory, `kyma-${picture.setting}.svg`), draw(picture, own))
}

function draw({ title, unit, shape, panels }: Picture, own: Row[]): string {
  const panelWidth = (width - frame.left - frame.right - gap - 30) / panels.length
  const parts = panels.map((panel, index) => {
    const left = frame.left + index * (panelWidth + gap + 30)
    return drawPanel(panel, shape, unit, own, left, panelWidth)
  })
  const loads = own.map(({ load }) => Number(load))
  const about = `${own[0]?.kymas} Kymas of 18 components, time shortened; load average of the shared machine ${Math.min(...loads).toFixed(0)} to ${Math.max(...loads).toFixed(0)}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" role="img" aria-label="${escaped(title)}">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(frame.left - 36, 28, title, 17, ink.text, 'start', 600),
    text(frame.left - 36, 46, about, 11, ink.faint, 'start'),
    ...parts,
    '</svg>\n',
  ].join('\n')
}

function drawPanel({ column, title, line }: Panel, shape: Picture['shape'], unit: string, own: Row[], left: number, panelWidth: number) {
  const values = own.map(row => Number(row[column]))
  const top = niceTop(Math.max(...values, line?.at ?? 0))
  const bottomY = height - frame.bottom
  const y = (value: number) => bottomY - (value / top) * (bottomY - frame.top)
  const step = panelWidth / own.length
  const x = (index: number) => left + step * (index + 0.5)
  const parts = [text(left, frame.top - 22, title, 12, ink.text, 'start', 600)]
  for (let tick = 0; tick <= 4; tick++) {
    const at = (top / 4) * tick
    parts.push(`<line x1="${left}" x2="${left + panelWidth}" y1="${y(at)}" y2="${y(at)}" stroke="${ink.grid}"/>`)
    parts.push(text(left - 6, y(at) + 4, format(at), 10, ink.faint, 'end'))
  }
  if (line) {
    const at = y(line.at)
    parts.push(
      `<line x1="${left}" x2="${left + panelWidth}" y1="${at}" y2="${at}" stroke="${ink.floor}" stroke-dasharray="4 3"/>`,
      text(left + panelWidth, at + 13, line.text, 10, ink.floor, 'end'),
    )
  }
  if (shape === 'line') {
    const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    parts.push(`<polyline points="${points}" fill="none" stroke="${ink.mark}" stroke-width="2"/>`)
  }
  for (const [index, value] of values.entries()) {
    if (shape === 'line') parts.push(`<circle cx="${x(index)}" cy="${y(value)}" r="3.5" fill="${ink.mark}"/>`)
    else {
      const bar = step * 0.56
      parts.push(
        `<rect x="${x(index) - bar / 2}" y="${y(value)}" width="${bar}" height="${bottomY - y(value)}" fill="${ink.mark}" rx="2"/>`,
      )
    }
    parts.push(halo(x(index), y(value) - 9, format(value)))
    const words = wrap(String(own[index]?.value), step / 5.2)
    for (const [row, word] of words.entries()) parts.push(text(x(index), bottomY + 16 + row * 12, word, 10, ink.faint, 'middle'))
  }
  if (unit) parts.push(text(left + panelWidth / 2, height - 14, unit, 11, ink.faint, 'middle'))
  return parts.join('\n')
}

/** The next of 1, 2, 4, 6, 8 times a power of ten above `value`. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1))
  return ([1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find(factor => factor * power >= value * 1.08) ?? 20) * power
}

function format(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString('en-US')
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1)
}

function wrap(words: string, most: number): string[] {
  const lines: string[] = []
  for (const word of words.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

function text(x: number, y: number, words: string, size: number, fill: string, anchor: 'start' | 'middle' | 'end', weight = 400): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}" fill="${fill}" text-anchor="${anchor}" font-weight="${weight}">${escaped(words)}</text>`
}

/** A number above a line, with a white outline so that the line does not cross it. */
function halo(x: number, y: number, words: string): string {
  return text(x, y, words, 10, ink.text, 'middle').replace('<text ', '<text paint-order="stroke" stroke="#ffffff" stroke-width="3" ')
}

function escaped(words: string): string {
  return words.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;')
}
