import { deepEqual, notDeepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { History, type ProjectionSources, Projections } from '../projection/index.ts'
import type { RunRow, StackRow, WorkerRow } from '../protocol/index.ts'
import { type ViewSources, versionOf } from './view-content.ts'
import { Visibility } from './visibility.ts'

function makeSources(): ViewSources {
  const cache = { onChange: () => {}, get: () => undefined, list: () => [] }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces', 'leases'] as const
  const projections = new Projections(Object.fromEntries(names.map(name => [name, cache])) as unknown as ProjectionSources)
  return {
    ...{ projections, history: new History(), nowMs: () => 0 },
    visibility: new Visibility({ name: 'anna', groups: [] }, async () => true),
    client: () => Promise.reject(new Error('not read here')),
  }
}

test('the page of a Stack is read again when its own row is another one, not when that of another Stack is', () => {
  const sources = makeSources()
  const { projections } = sources
  const set = (key: string, message: string) => projections.tables.stacks.set({ key, message } as StackRow)
  const version = () => [...versionOf({ kind: 'stack', namespace: 'a', name: 'one' }, sources)]
  const missing = version()
  set('a/one', 'queued')
  const first = version()
  notDeepEqual(first, missing)
  set('a/two', 'queued')
  deepEqual(version(), first)
  set('a/one', 'applying')
  notDeepEqual(version(), first)
})

test('the page of a Run is read again when its worker no longer exists', () => {
  const sources = makeSources()
  const { runs, workers } = sources.projections.tables
  runs.set({ key: 'a/one-1', namespace: 'a', name: 'one-1', stack: 'one', worker: 'w1' } as RunRow)
  const version = () => [...versionOf({ kind: 'run', namespace: 'a', name: 'one-1' }, sources)]
  workers.set({ key: 'w1', name: 'w1' } as WorkerRow)
  const busy = version()
  workers.set({ key: 'w1', name: 'w1', phase: 'Draining' } as WorkerRow)
  deepEqual(version(), busy)
  workers.delete('w1')
  notDeepEqual(version(), busy)
})
