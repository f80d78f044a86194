import assert from 'node:assert/strict'
import { test } from 'node:test'
import { capabilitiesFromEnv, engineVersions } from './worker-capabilities.ts'

test('labels, engines, isolation and capacity of a worker come from its environment; the command line wins', () => {
  const env = {
    OARLOCK_LABELS: 'gpu=a100,topology.kubernetes.io/zone=west',
    OARLOCK_ENGINES: 'terraform=1.11.4,command=built in',
    OARLOCK_CPU: '4',
    OARLOCK_MEMORY: '8Gi',
    OARLOCK_ISOLATION_LEVELS: 'Process,Sandbox',
  }
  assert.deepEqual(capabilitiesFromEnv(env, ['gpu=t4']), {
    labels: { gpu: 't4', 'topology.kubernetes.io/zone': 'west' },
    engines: { terraform: '1.11.4', command: 'built in' },
    capacity: { cpu: '4', memory: '8Gi' },
    isolation: ['Process', 'Sandbox'],
  })
  assert.deepEqual(capabilitiesFromEnv({}), { labels: {}, engines: undefined, capacity: undefined, isolation: undefined })
  assert.deepEqual(capabilitiesFromEnv({ OARLOCK_ENGINES: '' }).engines, {}, 'told that it has none')
})

for (const [what, env, given, message] of [
  ['a word without a value', { OARLOCK_LABELS: 'gpu' }, [], /OARLOCK_LABELS holds "gpu"; it must be key=value, several with commas/],
  ['a label that is none', {}, ['a b=c'], /label /],
  ['the label of the pool', {}, ['oarlock.dev/pool=x'], /the label oarlock\.dev\/pool is set by --pool/],
  [
    'a level that is none',
    { OARLOCK_ISOLATION_LEVELS: 'Process,Jail' },
    [],
    /OARLOCK_ISOLATION_LEVELS holds "Jail"; it must be some of Process, Sandbox, Pod/,
  ],
  ['a size that is none', { OARLOCK_MEMORY: 'much' }, [], /OARLOCK_MEMORY "much" must be a quantity such as 4, 500m or 8Gi/],
] as const) {
  test(`refused: ${what}`, () => assert.throws(() => capabilitiesFromEnv(env, given), message))
}

test('only engines that were found are told', () => {
  assert.deepEqual(
    engineVersions({
      terraform: { found: true, version: '1.11.4', path: '/usr/bin/terraform' },
      opentofu: { found: false, lookedFor: ['tofu'], howToInstall: '' },
    }),
    { terraform: '1.11.4' },
  )
})
