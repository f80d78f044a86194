import type { Paint } from '../output/style.ts'

/** `ok`: works. `warning`: only some users need it. `problem`: Oarlock does not work without it, or not reliably. */
export type Finding = {
  what: string
  state: 'ok' | 'warning' | 'problem'
  /** What was found. */
  detail: string
  /** What Oarlock needs, if that is not what was found. */
  needed?: string
  /** How to get it: a command if there is one. */
  fix?: string
}

const marks = { ok: ['green', '✓'], warning: ['yellow', '–'], problem: ['red', '✗'] } as const
const nameWidth = 16
const indent = ' '.repeat(nameWidth + 3)

/** The lines of a finding on a terminal of `columns`, wrapped between words. */
export function findingLines({ what, state, detail, needed, fix }: Finding, paint: Paint, columns = 80): string[] {
  const [color, mark] = marks[state]
  const [first = '', ...rest] = wrap(detail, columns - indent.length)
  const more = [...(needed ? [`needed: ${needed}`] : []), ...(fix ? [fix] : [])].flatMap(text => wrap(text, columns - indent.length))
  return [
    `${paint(color, mark)} ${what.padEnd(nameWidth)} ${first}`,
    ...rest.map(line => indent + line),
    ...more.map(line => indent + paint('dim', line)),
  ]
}

/** A word that is longer than a line, such as a path or a command, is not divided: it can be copied. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}
