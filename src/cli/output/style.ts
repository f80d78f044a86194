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

/** Adds a color to text, or returns it unchanged. */
export type Paint = (color: Color, text: string) => string

export const plainPaint: Paint = (_color, text) => text
export const colorPaint: Paint = (color, text) => `\u001b[${codes[color][0]}m${text}\u001b[${codes[color][1]}m`

/** Colors only on a terminal, unless NO_COLOR or TERM=dumb disables them. FORCE_COLOR takes precedence. */
export function choosePaint(stream: { isTTY?: boolean }, env: Record<string, string | undefined>): Paint {
  if (env.FORCE_COLOR && env.FORCE_COLOR !== '0') return colorPaint
  if (env.NO_COLOR || env.TERM === 'dumb') return plainPaint
  return stream.isTTY ? colorPaint : plainPaint
}

/** How many columns `text` takes, not counting color codes. */
export function visibleWidth(text: string): number {
  return [...process.getBuiltinModule('node:util').stripVTControlCharacters(text)].length
}

/** Truncates plain text to `width` columns; the last one shows `…`, which is never doubled. */
export function truncate(text: string, width: number): string {
  const letters = [...text]
  if (letters.length <= width) return text
  return width <= 0
    ? ''
    : `${letters
        .slice(0, width - 1)
        .join('')
        .replace(/…+$/, '')}…`
}

/** Pads text, which may have color codes, to `width` columns. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - visibleWidth(text)))
}

/** Safe text on one line: control characters, which could move the cursor of a terminal, and those that reverse or hide text become `·`. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Cf}]/gu, '·')
}
