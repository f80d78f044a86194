import { visibleText } from '../../kubernetes/util/index.ts'

/** A color of our own `Paint`; a log may have them too. They change no text and move no cursor. */
const color = '\\u001b\\[(?:0|1|2|22|3[1-6]|39)?m'
const colorOrText = new RegExp(`(${color})|\\u001b|[^\\u001b]+`, 'g')
/** The beginning of what could become a color with the next piece. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal escape
const incomplete = /\u001b(?:\[\d{0,2})?$/

/**
 * Replaces control characters, and those that reverse text, by their names, such as `\u001b`: a terminal would execute what a Stack has printed or stored, and hide or
 * invent lines. Keeps colors, tabs and line ends. In JSON, and in YAML of `stringifyYaml`, the result has the same value.
 */
export function escapeControls(text: string): string {
  return text.replace(colorOrText, (found, ofColor) => (ofColor === undefined ? visibleText(found) : found))
}

/** {@link escapeControls} for a stream of UTF-8. `write` receives whole characters. */
export function createControlEscaper(write: (text: string) => void): { push(bytes: Uint8Array): void; end(): void } {
  const decoder = new TextDecoder()
  let rest = ''
  const pass = (text: string): void => void (text !== '' && write(escapeControls(text)))
  return {
    push(bytes) {
      const text = rest + decoder.decode(bytes, { stream: true })
      rest = incomplete.exec(text)?.[0] ?? ''
      pass(text.slice(0, text.length - rest.length))
    },
    end() {
      pass(rest + decoder.decode())
      rest = ''
    },
  }
}
