import { deepEqual, notDeepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { History, type ProjectionSources, Projections } from '../projection/index.ts'
import type { StackRow } from '../protocol/index.ts'
import { type ViewSources, versionOf } from './view-content.ts'
import { Visibility } from './visibility.ts'

test('the page of a Stack is read again when its own row is another one, not when that of another Stack is', () => {
  const cache = { onChange: () => {}, get: () => undefined, list: () => [] }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces', 'leases'] as const
  const projections = new Projections(Object.fromEntries(names.map(name => [name, cache])) as unknown as ProjectionSources)
  const sources: ViewSources = {
    ...{ projections, history: new History(), nowMs: () => 0 },
    visibility: new Visibility({ name: 'anna', groups: [] }, async () => true),
    client: () => Promise.reject(new Error('not read here')),
  }
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
