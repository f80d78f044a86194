import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { enforceablePolicies } from './enforceable-policies.ts'

test('a machine with sandboxes, slirp4netns and a cgroup enforces everything', () => {
  deepEqual(enforceablePolicies({ levels: ['Process', 'Sandbox'], networks: ['Private', 'None', 'Host'], limitsCpu: true }), {
    what: 'enforceable',
    state: 'ok',
    detail: 'minimumIsolation Process, Sandbox; allowedNetworks Private, None, Host; maxResources cpu, memory, pids, disk',
  })
})

for (const [name, machine, detail] of [
  [
    'slirp4netns',
    { levels: ['Process', 'Sandbox'], networks: ['None', 'Host'], limitsCpu: true },
    'minimumIsolation Process, Sandbox; allowedNetworks None, Host; maxResources cpu, memory, pids, disk',
  ],
  [
    'a cgroup',
    { levels: ['Process', 'Sandbox'], networks: ['Private', 'None', 'Host'], limitsCpu: false },
    'minimumIsolation Process, Sandbox; allowedNetworks Private, None, Host; maxResources memory, pids, disk, not cpu',
  ],
  [
    'sandboxes',
    { levels: ['Process'], networks: undefined, limitsCpu: true },
    'minimumIsolation Process; allowedNetworks none; maxResources cpu, memory, pids, disk',
  ],
] as const)
  test(`a machine without ${name} reports what it can enforce`, () => {
    const found = enforceablePolicies(machine)
    deepEqual([found.state, found.detail], ['warning', detail])
    equal(found.fix === undefined, false)
  })
