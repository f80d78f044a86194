/**
 * An exact amount: `nanos` is the value times 10⁹, the precision of Kubernetes. `form` keeps the notation of the input, so
 * that `1Gi` is not formatted as `1073741824`.
 */
export type Quantity = { readonly nanos: bigint; readonly form: 'decimal' | 'binary' | 'exponent' }

const nano = 1_000_000_000n
const decimal: Record<string, bigint> = {
  n: 1n,
  u: 1_000n,
  m: 1_000_000n,
  '': nano,
  k: nano * 10n ** 3n,
  M: nano * 10n ** 6n,
  G: nano * 10n ** 9n,
  T: nano * 10n ** 12n,
  P: nano * 10n ** 15n,
  E: nano * 10n ** 18n,
}
const binary: Record<string, bigint> = {
  Ki: nano << 10n,
  Mi: nano << 20n,
  Gi: nano << 30n,
  Ti: nano << 40n,
  Pi: nano << 50n,
  Ei: nano << 60n,
}
const pattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]))?$/
/** The maximum of Kubernetes. */
const largest = (2n ** 63n - 1n) * nano
const maxLength = 64

/**
 * Parses `resource.Quantity`: `100m`, `1.5Gi`, `12e6`, `0.5`. As in Kubernetes, amounts finer than a nano are rounded away
 * from zero, and amounts above 2⁶³-1 become 2⁶³-1.
 * @throws {RangeError} in Kubernetes' words for other text.
 */
export function parseQuantity(text: string): Quantity {
  const match = text.length <= maxLength ? pattern.exec(text) : null
  const [, sign, whole = '', fraction = '', exponent, suffix = ''] = match ?? []
  if (match === null || (whole === '' && fraction === '')) {
    throw new RangeError(
      `quantity ${JSON.stringify(text.slice(0, maxLength))}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    )
  }
  let numerator = BigInt(whole + fraction) * (binary[suffix] ?? decimal[suffix]!)
  let denominator = 10n ** BigInt(fraction.length)
  const power = Number(exponent ?? 0)
  if (power >= 0) numerator *= 10n ** BigInt(power)
  else denominator *= 10n ** BigInt(-power)
  let nanos = (numerator + denominator - 1n) / denominator
  if (nanos > largest) nanos = largest
  return { nanos: sign === '-' ? -nanos : nanos, form: exponent !== undefined ? 'exponent' : suffix in binary ? 'binary' : 'decimal' }
}

/** Below 0 if `a` is less than `b`, 0 if they are equal, above 0 if it is more. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0
}

export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, form: a.nanos === 0n ? b.form : a.form }
}

/** The amount in thousandths, rounded up: the unit of CPU. Exact below 2⁵³ thousandths. */
export function quantityMillis(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nanos, 1_000_000n))
}

/** The amount as a number; exact for whole numbers below 2⁵³. */
export function quantityValue(quantity: Quantity): number {
  return quantity.nanos % nano === 0n ? Number(quantity.nanos / nano) : Number(quantity.nanos) / 1e9
}

function ceilDivide(amount: bigint, by: bigint): bigint {
  const quotient = amount / by
  return quotient * by < amount ? quotient + 1n : quotient
}

/** Formats an amount canonically: no fraction, the largest suffix that is exact, in the notation of the input. */
export function formatQuantity({ nanos, form }: Quantity): string {
  if (nanos === 0n) return '0'
  // As in Kubernetes: binary suffixes only for whole amounts of at least 1024.
  if (form === 'binary' && nanos % nano === 0n && (nanos >= 1024n * nano || nanos <= -1024n * nano)) {
    const [suffix, unit] = Object.entries(binary).findLast(([, size]) => nanos % size === 0n) ?? ['', nano]
    return `${nanos / unit}${suffix}`
  }
  const [suffix, unit] = Object.entries(decimal).findLast(([, size]) => nanos % size === 0n) as [string, bigint]
  if (form !== 'exponent' || suffix === '') return `${nanos / unit}${suffix}`
  return `${nanos / unit}e${Object.keys(decimal).indexOf(suffix) * 3 - 9}`
}
