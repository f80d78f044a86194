const encoder = new TextEncoder()

/**
 * The 64-bit FNV-1a hash of a string in UTF-8, as two halves of 32 bits: BigInt takes thirty times as long, and a watch hashes for every
 * event. It imports nothing, because the supervisor of workers loads it.
 */
export function fnv1a64(value: string): readonly [high: number, low: number] {
  let high = 0xcbf29ce4
  let low = 0x84222325
  // The prime is 2^40 + 435.
  for (const byte of encoder.encode(value)) {
    low = (low ^ byte) >>> 0
    const product = low * 435
    high = (high * 435 + Math.floor(product / 0x1_0000_0000) + ((low << 8) >>> 0)) % 0x1_0000_0000
    low = product % 0x1_0000_0000
  }
  return [high, low]
}
