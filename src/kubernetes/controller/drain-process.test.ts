import { deepEqual } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'

for (const { name, graceMs, isImpatient, want } of [
  { name: 'one SIGTERM stops it gracefully after the grace period', graceMs: 100, isImpatient: false, want: ['working,drained', 0] },
  { name: 'a second SIGTERM exits immediately with code 1', graceMs: 600_000, isImpatient: true, want: ['working', 1] },
]) {
  test(`a real process whose reconcile never ends: ${name}`, async () => {
    const api = await InMemoryApi.start()
    api.put('/api/v1/namespaces/a/configmaps/x')
    const program = join(import.meta.dirname, 'drain.testing.ts')
    const child = spawn(process.execPath, [program, api.server.url, String(graceMs)], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let stdout = ''
      child.stdout.on('data', chunk => {
        stdout += chunk
      })
      await eventually(() => stdout.includes('working'), 'it works', 20_000)
      const ended = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGTERM')
      // Repeatedly, because the kernel merges two pending signals of the same kind.
      if (isImpatient) await eventually(() => child.exitCode !== null || !child.kill('SIGTERM'), 'the process to exit')
      await ended
      deepEqual([stdout.trim().replaceAll('\n', ','), child.exitCode], want)
    } finally {
      child.kill('SIGKILL')
      await api.close()
    }
  })
}
