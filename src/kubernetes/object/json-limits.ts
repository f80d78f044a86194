/** Limits on the properties of JSON, other than its length, that make it expensive to process. */
export type JsonLimits = {
  /** How deep arrays and objects may be nested. */
  readonly depth: number
  /** The number of fields and items, at all depths together. */
  readonly nodes: number
}

/** The limit that `value` exceeds, if any. Stops at the limits, so it is safe for untrusted input. */
export function exceededJsonLimit(value: unknown, { depth, nodes }: JsonLimits): keyof JsonLimits | undefined {
  let remaining = nodes
  const walk = (part: unknown, deeper: number): keyof JsonLimits | undefined => {
    if (typeof part !== 'object' || part === null) return undefined
    if (deeper <= 0) return 'depth'
    const children: readonly unknown[] = Array.isArray(part) ? part : Object.values(part)
    remaining -= children.length
    if (remaining < 0) return 'nodes'
    for (const child of children) {
      const exceeded = walk(child, deeper - 1)
      if (exceeded) return exceeded
    }
    return undefined
  }
  return walk(value, depth)
}

/**
 * Like {@link exceededJsonLimit}, but for text before it is parsed: JSON.parse takes half a second for three megabytes of
 * brackets. For text that is not JSON the result is unspecified.
 */
export function exceededJsonTextLimit(text: string, { depth, nodes }: JsonLimits): keyof JsonLimits | undefined {
  // Each level and each node takes at least one character, and a level another one for its end.
  if (text.length <= 2 * depth && text.length <= nodes) return undefined
  let deep = 0
  let count = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 34: {
        at = endOfString(text, at)
        if (at < 0) return undefined
        break
      }
      // [ and {
      case 91:
      case 123:
        if (++deep > depth) return 'depth'
        if (++count > nodes) return 'nodes'
        break
      // ] and }
      case 93:
      case 125:
        deep--
        break
      case 44:
        if (++count > nodes) return 'nodes'
    }
  }
  return undefined
}

/** The index of the quote that closes the string opened at `at`, or -1. */
export function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 92) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return -1
}
