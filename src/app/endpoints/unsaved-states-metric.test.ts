import { deepEqual } from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import type { Worker } from '../../api/index.ts'
import { registerUnsavedStates, type UnsavedStatesSources } from './unsaved-states-metric.ts'

async function samples(sources: UnsavedStatesSources): Promise<string[]> {
  const registry = new Registry()
  registerUnsavedStates(registry, sources)
  return (await registry.metrics()).split('\n').filter(line => line.startsWith('oarlock_'))
}
const worker = (host: string, unsavedStates?: number): Pick<Worker, 'status'> => ({
  status: { phase: 'Ready', host, ...(unsavedStates !== undefined && { unsavedStates }) },
})

test('counts the states of a host once, however many of its workers report them', async () => {
  deepEqual(await samples({ workers: () => [worker('a', 2), worker('a', 3), worker('b', 1), worker('c')] }), [
    'oarlock_unsaved_states{host="a"} 3',
    'oarlock_unsaved_states{host="b"} 1',
  ])
})

test('counts those of its own host also when no worker is registered', async () => {
  deepEqual(await samples({ local: () => 4 }), [`oarlock_unsaved_states{host="${hostname()}"} 4`])
})
