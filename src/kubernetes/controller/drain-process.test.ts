import { deepEqual } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'

for (const { name, graceMs, isImpatient, want } of [
  { name: 'one SIGTERM ends it in good order when the grace time is over', graceMs: 100, isImpatient: false, want: ['working,drained', 0] },
  { name: 'a second SIGTERM ends it at once, with exit code 1', graceMs: 600_000, isImpatient: true, want: ['working', 1] },
]) {
  test(`a real process whose reconcile never ends: ${name}`, async () => {
    const api = await InMemoryApi.start()
    api.put('/api/v1/namespaces/a/configmaps/x')
    const program = join(import.meta.dirname, 'drain.testing.ts')
    const child = spawn(process.execPath, [program, api.server.url, String(graceMs)], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let told = ''
      child.stdout.on('data', chunk => {
        told += chunk
      })
      await eventually(() => told.includes('working'), 'it works', 20_000)
      const ended = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGTERM')
      // Again and again, since two of a kind that come together are one to the kernel.
      while (isImpatient && child.exitCode === null) {
        await new Promise(resolve => setTimeout(resolve, 50))
        child.kill('SIGTERM')
      }
      await ended
      deepEqual([told.trim().replaceAll('\n', ','), child.exitCode], want)
    } finally {
      child.kill('SIGKILL')
      await api.close()
    }
  })
}
