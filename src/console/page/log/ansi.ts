import { visibleText } from '../parts/visible-text.ts'

/** Part of a line that a program has coloured. `classes` are names of the style sheet. */
export type StyledSpan = { readonly start: number; readonly end: number; readonly classes: string }

/** What a program has set for the text that follows. */
export type AnsiStyle = {
  readonly colour?: AnsiColour
  readonly isBold?: boolean
  readonly isDim?: boolean
  readonly isUnderlined?: boolean
}
type AnsiColour = 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'grey'

export const plainStyle: AnsiStyle = {}

/** By their names: a linter takes them for mistakes. */
const [esc, bell] = ['\\u001b', '\\u0007']
/** CSI, whose parameters and end are captured; OSC, such as links and titles; strings for terminals; others of two characters; and single control characters but tabs. */
const sequence = new RegExp(
  [
    `${esc}\\[([0-9;:]*)([ -/]*[@-~])`,
    `${esc}\\][^${bell}${esc}]*(?:${bell}|${esc}\\\\)`,
    `${esc}[PX^_][^${esc}]*${esc}\\\\`,
    `${esc}[ -/]*[0-~]`,
    '[^\\P{Cc}\\t]',
  ].join('|'),
  'gu',
)

/**
 * The text of a line without control characters, with escapes such as `\u202e` for what reverses text, and its colours. `style` continues from line to line. Backgrounds are left out, and the colours are the
 * seven of the page, so that every text can be read in both themes.
 */
export function readAnsi(
  line: string,
  style: AnsiStyle,
): { readonly text: string; readonly spans: readonly StyledSpan[]; readonly style: AnsiStyle } {
  const spans: StyledSpan[] = []
  let text = ''
  let at = 0
  let current = style
  const add = (raw: string) => {
    if (raw === '') return
    const part = visibleText(raw)
    const classes = classesOf(current)
    if (classes !== '') spans.push({ start: text.length, end: text.length + part.length, classes })
    text += part
  }
  for (const match of line.matchAll(sequence)) {
    add(line.slice(at, match.index))
    at = match.index + match[0].length
    if (match[2] === 'm') current = withCodes(current, match[1] ?? '')
  }
  add(line.slice(at))
  return { text, spans, style: current }
}

function classesOf({ colour, isBold, isDim, isUnderlined }: AnsiStyle): string {
  return [colour && `ansi-${colour}`, isBold && 'ansi-bold', isDim && 'ansi-grey', isUnderlined && 'ansi-underlined']
    .filter(Boolean)
    .join(' ')
}

/** By the last digit of the code; black and white are the colour of text. */
const named: readonly (AnsiColour | undefined)[] = [undefined, 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', undefined]

function withCodes(style: AnsiStyle, parameters: string): AnsiStyle {
  const codes = parameters.split(/[;:]/).map(Number)
  let next: AnsiStyle = style
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number
    if (code === 0) next = plainStyle
    else if (code === 1) next = { ...next, isBold: true }
    else if (code === 2) next = { ...next, isDim: true }
    else if (code === 4) next = { ...next, isUnderlined: true }
    else if (code === 22) next = { ...next, isBold: false, isDim: false }
    else if (code === 24) next = { ...next, isUnderlined: false }
    else if (code >= 30 && code <= 37) next = coloured(next, named[code - 30])
    else if (code === 90) next = coloured(next, 'grey')
    else if (code > 90 && code <= 97) next = coloured(next, named[code - 90])
    else if (code === 39) next = coloured(next, undefined)
    else if (code === 38 || code === 48) {
      const isIndexed = codes[at + 1] === 5
      const colour = isIndexed ? ofIndex(codes[at + 2] ?? 0) : ofRgb(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0)
      if (code === 38) next = coloured(next, colour)
      at += isIndexed ? 2 : 4
    }
  }
  return next
}

function coloured({ colour: _, ...style }: AnsiStyle, colour: AnsiColour | undefined): AnsiStyle {
  return colour ? { ...style, colour } : style
}

function ofIndex(index: number): AnsiColour | undefined {
  if (index === 8) return 'grey'
  if (index < 16) return named[index % 8]
  if (index >= 232) return index < 250 ? 'grey' : undefined
  const levels = [Math.floor((index - 16) / 36), Math.floor((index - 16) / 6) % 6, (index - 16) % 6] as const
  return ofRgb(...(levels.map(level => level * 51) as [number, number, number]))
}

/** The nearest of the seven by hue. */
function ofRgb(red: number, green: number, blue: number): AnsiColour | undefined {
  const [most, least] = [Math.max(red, green, blue), Math.min(red, green, blue)]
  if (most - least < 48) return most > 64 && most < 176 ? 'grey' : undefined
  const isHigh = (value: number) => value - least > (most - least) / 2
  const index = (isHigh(red) ? 1 : 0) + (isHigh(green) ? 2 : 0) + (isHigh(blue) ? 4 : 0)
  return named[index]
}
