import type { ViewQuery } from '../../protocol/index.ts'

/** The same for equal queries: tabs that show the same view share it. 64 bits of FNV-1a, as two halves. */
export function viewIdOf(query: ViewQuery): string {
  const text = JSON.stringify(Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1)))
  return hash(text, 0x811c9dc5) + hash(text, 0x01000193)
}

function hash(text: string, seed: number): string {
  let value = seed
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return (value >>> 0).toString(36)
}
