const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/**
 * Formats a number of bytes for people, in binary units with at most one decimal: `900 bytes`, `1.5 KiB`, `10 MiB`.
 * Quantities in Kubernetes' notation (`10Mi`) are `formatQuantity`'s.
 */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit: string = bytes === 1 ? 'byte' : 'bytes'
  for (const next of units) {
    // Rounding must not produce 1024 of a unit.
    if (Math.abs(Math.round(value * 10) / 10) < 1_024) break
    value /= 1_024
    unit = next
  }
  return `${Math.round(value * 10) / 10} ${unit}`
}
