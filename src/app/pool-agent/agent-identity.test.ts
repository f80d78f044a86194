import { equal, match, notEqual, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openAgentIdentity } from './agent-identity.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-agent-'))
after(() => rmSync(directory, { recursive: true, force: true }))

test('an agent keeps its name after a restart, and two data directories of a host have different names', () => {
  const open = (name: string) => {
    const identity = openAgentIdentity(join(directory, name), 'host1')
    identity.release()
    return identity.name
  }
  const first = open('one')
  match(first, /^host1-[0-9a-f]{8}$/)
  equal(open('one'), first)
  notEqual(open('two'), first)
})

test('rejects a data directory that another process uses', () => {
  const held = openAgentIdentity(join(directory, 'held'), 'host1')
  throws(() => openAgentIdentity(join(directory, 'held'), 'host1'), { message: /is in use by another "oarlock pool"/, hint: /--data/ })
  held.release()
  openAgentIdentity(join(directory, 'held'), 'host1').release()
})
