import { deepEqual, notDeepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kubernetes/object/index.ts'
import { History, type ProjectionSources, Projections } from '../projection/index.ts'
import type { RunRow, StackRow, WorkerRow } from '../protocol/index.ts'
import { type ViewSources, versionOf, viewContent } from './view-content.ts'
import { Visibility } from './visibility.ts'

function makeSources(more: Partial<ViewSources> = {}): ViewSources {
  const cache = { onChange: () => {}, get: () => undefined, list: () => [] }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces', 'leases'] as const
  const projections = new Projections(Object.fromEntries(names.map(name => [name, cache])) as unknown as ProjectionSources)
  return {
    ...{ projections, history: new History(), nowMs: () => 0 },
    visibility: new Visibility({ name: 'anna', groups: [] }, async () => true),
    client: () => Promise.reject(new Error('not read here')),
    onError: () => {},
    ...more,
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

test('a failure of the console is logged, and the browser gets none of its text; an error of the API server is shown', async () => {
  const logged: unknown[] = []
  const errorOf = async (error: Error) => {
    const sources = makeSources({ client: () => Promise.reject(error), onError: one => logged.push(one) })
    return (await viewContent({ kind: 'stack', namespace: 'a', name: 'one' }, sources)).error
  }
  const bug = new TypeError("cannot read properties of undefined (reading 'secret')")
  deepEqual(await errorOf(bug), { code: 'Unavailable', message: 'the console failed: see its log' })
  deepEqual(logged, [bug])
  for (const [reason, code] of [
    ['Forbidden', 'Forbidden'],
    ['NotFound', 'NotFound'],
    ['ServiceUnavailable', 'Unavailable'],
  ] as const)
    deepEqual(await errorOf(new StatusError(reason, 'its text')), { code, message: 'its text' })
  deepEqual(logged, [bug])
})
