import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { policyFromEnv } from './worker-policy.ts'

test('reads from the environment what the driver of its pool passes', () => {
  deepEqual(
    policyFromEnv({
      OARLOCK_MINIMUM_ISOLATION: 'Sandbox',
      OARLOCK_ALLOWED_NETWORKS: 'Private,None',
      OARLOCK_MAX_RESOURCES: 'cpu=500m,memory=2Gi,pids=100,disk=1G',
    }),
    {
      minimumIsolation: 'Sandbox',
      allowedNetworks: ['Private', 'None'],
      maxResources: { cpu: '500m', memory: '2Gi', pids: 100, disk: '1G' },
    },
  )
  deepEqual(policyFromEnv({}), {})
})

for (const [name, env, message] of [
  [
    'an unknown level',
    { OARLOCK_MINIMUM_ISOLATION: 'Jail' },
    /OARLOCK_MINIMUM_ISOLATION contains "Jail"; it must be among Process, Sandbox, Pod/,
  ],
  [
    'an unknown network',
    { OARLOCK_ALLOWED_NETWORKS: 'Host,Any' },
    /OARLOCK_ALLOWED_NETWORKS contains "Any"; it must be among Private, None, Host/,
  ],
  ['an unknown limit', { OARLOCK_MAX_RESOURCES: 'gpu=1' }, /OARLOCK_MAX_RESOURCES contains "gpu"; it must be cpu, memory, pids or disk/],
  ['an invalid quantity', { OARLOCK_MAX_RESOURCES: 'memory=much' }, /OARLOCK_MAX_RESOURCES: memory "much" must be a quantity/],
  ['half a process', { OARLOCK_MAX_RESOURCES: 'pids=0.5' }, /OARLOCK_MAX_RESOURCES: pids "0.5" must be a whole number above 0/],
] as const) {
  test(`rejects ${name}`, () => throws(() => policyFromEnv(env), message))
}
