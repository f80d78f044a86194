import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { formatBytes } from './format-bytes.ts'

for (const [bytes, want] of [
  [0, '0 bytes'],
  [1, '1 byte'],
  [900, '900 bytes'],
  [1_023, '1023 bytes'],
  [1_024, '1 KiB'],
  [1_536, '1.5 KiB'],
  [10 * 2 ** 20, '10 MiB'],
  [2 ** 20 - 1, '1 MiB'],
  [1.5 * 2 ** 30, '1.5 GiB'],
  [2 ** 60, '1024 PiB'],
] as const) {
  test(`formats ${bytes} bytes as ${want}`, () => equal(formatBytes(bytes), want))
}
