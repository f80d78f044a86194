/** What makes JSON costly to whoever walks it, beside its length. */
export type JsonLimits = {
  /** How deep arrays and objects may nest. */
  readonly depth: number
  /** How many fields and items there may be, at all depths together. */
  readonly nodes: number
}

/** Which limit `value` exceeds, if any. Walks no deeper and no further than the limits, so it is safe on what strangers send. */
export function exceededJsonLimit(value: unknown, { depth, nodes }: JsonLimits): keyof JsonLimits | undefined {
  let left = nodes
  const walk = (part: unknown, deeper: number): keyof JsonLimits | undefined => {
    if (typeof part !== 'object' || part === null) return undefined
    if (deeper <= 0) return 'depth'
    const children: readonly unknown[] = Array.isArray(part) ? part : Object.values(part)
    left -= children.length
    if (left < 0) return 'nodes'
    for (const child of children) {
      const exceeded = walk(child, deeper - 1)
      if (exceeded) return exceeded
    }
    return undefined
  }
  return walk(value, depth)
}

/**
 * As {@link exceededJsonLimit}, of a text before it is parsed: three megabytes of brackets take JSON.parse half a second. What is no JSON
 * may be told as anything.
 */
export function exceededJsonTextLimit(text: string, { depth, nodes }: JsonLimits): keyof JsonLimits | undefined {
  // Each level and each node takes at least one character, a level another one for its end.
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

/** The index of the quote that closes the string opened at `at`; -1 when none does. */
export function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === 92) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return -1
}
