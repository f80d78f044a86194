/** Longer texts cannot be added. */
export const maxTextLength = 255

/** Texts have at least this many characters. */
export const minTextLength = 4

/**
 * Finds the longest of many texts at a position, in a time that depends neither on their number nor on their similarity.
 * A binary search over the length (Waldvogel et al., "Scalable High Speed IP Routing Lookups", 1997): a text of 13 characters has markers
 * for its first 8, 12 and 13, and each marker knows the longest text that it begins with.
 */
export class TextIndex {
  readonly #markers = new Map<string, number>()
  readonly #firstStep: number
  /** For each hash of four characters, whether a text begins with such: most positions need no further look-up. */
  readonly #starts: Uint8Array
  readonly #shift: number
  readonly maxLength: number

  /** @param texts of {@link minTextLength} to {@link maxTextLength} characters. */
  constructor(texts: Iterable<string>) {
    // Shortest first: what a marker begins with is known when it is added.
    const sorted = [...texts].sort((a, b) => a.length - b.length)
    this.maxLength = sorted.at(-1)?.length ?? 0
    this.#firstStep = 2 ** Math.floor(Math.log2(Math.max(1, this.maxLength)))
    const bits = Math.min(22, Math.max(12, Math.ceil(Math.log2(sorted.length * 64 + 1))))
    this.#shift = 32 - bits
    this.#starts = new Uint8Array(2 ** bits)
    for (const text of sorted) {
      let hash = 0
      for (let at = 0; at < minTextLength; at++) hash = shiftIn(hash, text.charCodeAt(at))
      this.#starts[this.#slot(hash)] = 1
      let length = 0
      for (let step = this.#firstStep; length < text.length; step >>= 1) {
        if (length + step > text.length) continue
        length += step
        const marker = text.slice(0, length)
        if (!this.#markers.has(marker)) this.#markers.set(marker, this.#longestAt(marker, 0))
      }
      this.#markers.set(text, text.length)
    }
  }

  /** Calls `found` with start and end of the longest text at each position from `from` to before `to`, until it returns true. */
  scan(text: string, from: number, to: number, found: (start: number, end: number) => boolean | undefined): void {
    if (this.maxLength === 0) return
    const last = Math.min(text.length, to + minTextLength - 1)
    let hash = 0
    for (let at = from; at < last; at++) {
      hash = shiftIn(hash, text.charCodeAt(at))
      if (this.#starts[this.#slot(hash)] === 0) continue
      const start = at - minTextLength + 1
      if (start < from) continue
      const length = this.#longestAt(text, start)
      if (length > 0 && found(start, start + length)) return
    }
  }

  #longestAt(text: string, start: number): number {
    let length = 0
    let longest = 0
    for (let step = this.#firstStep; step > 0; step >>= 1) {
      const end = start + length + step
      if (end > text.length) continue
      const known = this.#markers.get(text.slice(start, end))
      if (known === undefined) continue
      length += step
      longest = Math.max(longest, known)
    }
    return longest
  }

  #slot(hash: number): number {
    return Math.imul(hash & 0xfffffff, 0x9e3779b1) >>> this.#shift
  }
}

/** Of the last four characters, seven bits each. */
const shiftIn = (hash: number, code: number): number => (hash << 7) ^ code
