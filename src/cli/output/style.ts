import { stripVTControlCharacters } from 'node:util'

export type Color = 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'dim' | 'bold'
const codes: Record<Color, [open: number, close: number]> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
}

/** Wraps text in a colour, or leaves it alone. */
export type Paint = (color: Color, text: string) => string

export const plainPaint: Paint = (_color, text) => text
export const colorPaint: Paint = (color, text) => `\u001b[${codes[color][0]}m${text}\u001b[${codes[color][1]}m`

/** Colours only on a terminal, and not where NO_COLOR or TERM=dumb asks for none; FORCE_COLOR wins. */
export function choosePaint(stream: { isTTY?: boolean }, env: Record<string, string | undefined>): Paint {
  if (env.FORCE_COLOR && env.FORCE_COLOR !== '0') return colorPaint
  if (env.NO_COLOR || env.TERM === 'dumb') return plainPaint
  return stream.isTTY ? colorPaint : plainPaint
}

/** How many columns `text` takes: colour codes take none. */
export function visibleWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length
}

/** Cuts plain text to `width` columns; what is cut shows as `…`. */
export function cut(text: string, width: number): string {
  const letters = [...text]
  if (letters.length <= width) return text
  return width <= 0 ? '' : `${letters.slice(0, width - 1).join('')}…`
}

/** Pads text, colour codes and all, to `width` columns. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - visibleWidth(text)))
}

/** One line of safe text: control characters, which could move the cursor of whoever reads a log, show as `·`. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return text.replace(/\s+/g, ' ').replace(/[\u0000-\u001f\u007f-\u009f]/g, '·')
}
