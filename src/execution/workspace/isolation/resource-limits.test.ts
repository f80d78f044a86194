import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findExceededLimit, formatMebibytes, parseRunLimits } from './resource-limits.ts'

const mebibyte = 2 ** 20

test('parses the resources of a Stack', () => {
  assert.deepEqual(parseRunLimits({ cpu: '1500m', memory: '512Mi', pids: 200, disk: '2Gi' }), {
    cpus: 1.5,
    memoryBytes: 512 * mebibyte,
    pids: 200,
    diskBytes: 2048 * mebibyte,
  })
  assert.deepEqual(parseRunLimits({}), {})
})

for (const [resources, message] of [
  [{ memory: '512m' }, /^spec\.resources\.memory "512m" must be at least 16Mi \(the suffix m means thousandths; Mi means mebibytes\)$/],
  [{ disk: '1Mi' }, /^spec\.resources\.disk "1Mi" must be at least 16Mi$/],
  [{ cpu: '1m' }, /^spec\.resources\.cpu "1m" must be at least 10m/],
  [{ cpu: 'many' }, /^spec\.resources\.cpu: /],
] as const) {
  test(`rejects resources ${JSON.stringify(resources)}`, () =>
    assert.throws(() => parseRunLimits(resources), { name: 'RangeError', message }))
}

const limits = { memoryBytes: 100 * mebibyte, pids: 10, diskBytes: 100 * mebibyte }
for (const { name, measured, byKernel = [], want } of [
  { name: 'usage at the limits', measured: { memoryBytes: 100 * mebibyte, pids: 10 }, want: undefined },
  {
    name: 'too much memory',
    measured: { memoryBytes: 101 * mebibyte },
    want: { kind: 'Memory', used: 101 * mebibyte, limit: 100 * mebibyte },
  },
  { name: 'too many processes', measured: { pids: 11 }, want: { kind: 'Pids', used: 11, limit: 10 } },
  { name: 'a limit that the kernel enforces', measured: { memoryBytes: 101 * mebibyte }, byKernel: ['memory'], want: undefined },
] as { name: string; measured: object; byKernel?: ('memory' | 'pids')[]; want: object | undefined }[]) {
  test(`exceeded limit: ${name}`, () =>
    assert.deepEqual(findExceededLimit({ memoryBytes: 0, pids: 0, ...measured }, limits, new Set(byKernel)), want))
}

test('formats bytes in mebibytes, rounded up', () => assert.equal(formatMebibytes(256 * mebibyte - 1), '256Mi'))
