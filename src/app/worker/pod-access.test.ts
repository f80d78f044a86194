import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { PodToken } from './pod-access.ts'

test('a token that the kubelet has replaced is used within half a minute, and one that cannot be read is kept', () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-pod-'))
  try {
    const file = join(directory, 'token')
    writeFileSync(file, 'new\n')
    let nowMs = 0
    const token = new PodToken(file, 'old', () => nowMs)
    nowMs = 29_999
    equal(token.get(), 'old')
    nowMs = 30_000
    equal(token.get(), 'new')
    writeFileSync(file, '')
    nowMs = 60_000
    equal(token.get(), 'new')
    rmSync(file)
    nowMs = 90_000
    equal(token.get(), 'new')
  } finally {
    rmSync(directory, { recursive: true })
  }
})
