import assert from 'node:assert/strict'
import { test } from 'node:test'
import { capabilitiesFromEnv, engineVersions } from './worker-capabilities.ts'

test('reads labels, engines, isolation and capacity from the environment; labels of the command line override', () => {
  const env = {
    OARLOCK_LABELS: 'gpu=a100,topology.kubernetes.io/zone=west',
    OARLOCK_ENGINES: 'terraform=1.11.4,command=built in',
    OARLOCK_CPU: '4',
    OARLOCK_MEMORY: '8Gi',
    OARLOCK_ISOLATION_LEVELS: 'Process,Sandbox',
    OARLOCK_NETWORKS: 'Private,None',
  }
  assert.deepEqual(capabilitiesFromEnv(env, ['gpu=t4']), {
    labels: { gpu: 't4', 'topology.kubernetes.io/zone': 'west' },
    engines: { terraform: '1.11.4', command: 'built in' },
    capacity: { cpu: '4', memory: '8Gi' },
    isolation: ['Process', 'Sandbox'],
    networks: ['Private', 'None'],
  })
  const none = { engines: undefined, capacity: undefined, isolation: undefined, networks: undefined }
  assert.deepEqual(capabilitiesFromEnv({}), { labels: {}, ...none })
  assert.deepEqual(capabilitiesFromEnv({ OARLOCK_ENGINES: '' }).engines, {}, 'an empty list means no engine')
})

for (const [name, env, labelOptions, message] of [
  [
    'a label without a value',
    { OARLOCK_LABELS: 'gpu' },
    [],
    /OARLOCK_LABELS contains "gpu"; it must be key=value pairs separated by commas/,
  ],
  ['an invalid label key', {}, ['a b=c'], /label /],
  ['the label of the pool', {}, ['oarlock.dev/pool=x'], /label oarlock\.dev\/pool must not be set; use --pool/],
  [
    'an unknown isolation level',
    { OARLOCK_ISOLATION_LEVELS: 'Process,Jail' },
    [],
    /OARLOCK_ISOLATION_LEVELS contains "Jail"; it must be among Process, Sandbox, Pod/,
  ],
  ['an invalid quantity', { OARLOCK_MEMORY: 'much' }, [], /OARLOCK_MEMORY "much" must be a quantity such as 4, 500m or 8Gi/],
] as const) {
  test(`rejects ${name}`, () => assert.throws(() => capabilitiesFromEnv(env, labelOptions), message))
}

test('lists only the engines that were found', () => {
  assert.deepEqual(
    engineVersions({
      terraform: { found: true, version: '1.11.4', path: '/usr/bin/terraform' },
      opentofu: { found: false, reasons: ['tofu'], howToInstall: '' },
    }),
    { terraform: '1.11.4' },
  )
})
