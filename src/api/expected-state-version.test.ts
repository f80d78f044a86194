import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { expectedStateVersion } from './expected-state-version.ts'
import type { Stack } from './stack.ts'

type Facts = { status?: Stack['status']; imported?: string; state?: 'External' }
const cases: [name: string, facts: Facts, want: number][] = [
  ['a new Stack may have no state', {}, 0],
  ['a Run has stored a version', { status: { stateVersion: 3, resources: 0 } }, 3],
  ['a Run of an earlier release has created resources', { status: { resources: 2 } }, 1],
  ['a state was imported before the first Run', { imported: 'lineage' }, 1],
  ['a state without a lineage was pushed', { imported: '' }, 1],
  ['a state is being imported', { imported: 'pending:lineage' }, 0],
  ['a Run has stored a version after the import', { status: { stateVersion: 3 }, imported: 'lineage' }, 3],
  ['the state is elsewhere', { status: { stateVersion: 3, resources: 1 }, imported: 'lineage', state: 'External' }, 0],
]
for (const [name, { status, imported, state }, want] of cases)
  test(`${name}: ${want}`, () => {
    const annotations: Record<string, string> = imported === undefined ? {} : { 'oarlock.dev/imported-state': imported }
    equal(expectedStateVersion({ metadata: { annotations }, spec: { state } as Stack['spec'], ...(status && { status }) }), want)
  })
