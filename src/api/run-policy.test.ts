import { deepEqual, equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { applyPolicy, mergePolicies, poolPolicy, type RunPolicy, type StackSpec } from './index.ts'

type Requested = Pick<StackSpec, 'isolation' | 'resources'>

const pool = (policy: RunPolicy) => ({ origin: 'WorkerPool p', policy })
const tenant = (policy: RunPolicy) => ({ origin: 'Tenant t', policy })

describe('a Stack gets what it does not set', () => {
  const cases: readonly (readonly [string, Requested, RunPolicy, string])[] = [
    ['Process without a minimum', {}, {}, 'Process Host'],
    ['the minimum level, with the first allowed network', {}, { minimumIsolation: 'Sandbox' }, 'Sandbox Private'],
    ['None if Private is not allowed', {}, { minimumIsolation: 'Sandbox', allowedNetworks: ['Host', 'None'] }, 'Sandbox None'],
    ['Host if nothing else is allowed', { isolation: { level: 'Sandbox' } }, { allowedNetworks: ['Host'] }, 'Sandbox Host'],
    ['Sandbox if it sets a network of its own', { isolation: { network: 'None' } }, {}, 'Sandbox None'],
    ['Pod if that is the minimum', { isolation: {} }, { minimumIsolation: 'Pod' }, 'Pod Host'],
    ['its own level if that is stronger', { isolation: { level: 'Pod' } }, { minimumIsolation: 'Sandbox' }, 'Pod Host'],
  ]
  for (const [name, requested, policy, expected] of cases)
    test(name, () => {
      const { isolation, violations } = applyPolicy(requested, [tenant(policy)])
      deepEqual([`${isolation.level} ${isolation.network}`, violations], [expected, []])
    })

  test('the lowest maximum of each limit, and keeps lower limits', () => {
    const sources = [
      tenant({ maxResources: { memory: '1Gi', pids: 100 } }),
      pool({ maxResources: { memory: '512Mi', cpu: '2', disk: '1G' } }),
    ]
    const { resources, violations } = applyPolicy({ resources: { cpu: '500m' } }, sources)
    deepEqual([resources, violations], [{ cpu: '500m', memory: '512Mi', pids: 100, disk: '1G' }, []])
  })

  test('a memory limit that is raised up to the maximum', () => {
    const resources = { memory: '256Mi', autoRaise: { memory: '4Gi' } }
    deepEqual(applyPolicy({ resources }, [tenant({ maxResources: { memory: '1Gi' } })]), {
      isolation: { level: 'Process', network: 'Host' },
      resources: { memory: '256Mi', autoRaise: { memory: '1Gi' } },
      violations: [],
    })
  })
})

describe('a Stack that sets less than is required violates the policy', () => {
  const policy: RunPolicy = { minimumIsolation: 'Sandbox', maxResources: { cpu: '1', memory: '1Gi', pids: 100, disk: '2Gi' } }
  const cases: readonly (readonly [string, Requested, string])[] = [
    [
      'a weaker level',
      { isolation: { level: 'Process' } },
      'spec.isolation.level: Process is weaker than Sandbox, which Tenant t requires (minimumIsolation); set Sandbox or remove the field',
    ],
    [
      'a network that the pool does not allow',
      { isolation: { network: 'Host' } },
      'spec.isolation.network: Host is not allowed by WorkerPool p (allowedNetworks: Private, None); set Private or None, or remove the field',
    ],
    [
      'more memory',
      { resources: { memory: '1025Mi' } },
      'spec.resources.memory: 1025Mi is more than 1Gi, which Tenant t allows (maxResources.memory); set at most 1Gi or remove the field',
    ],
    [
      'more cpu, and more processes',
      { resources: { cpu: '1001m', pids: 101 } },
      'spec.resources.cpu: 1001m is more than 1, which Tenant t allows (maxResources.cpu); set at most 1 or remove the field; ' +
        'spec.resources.pids: 101 is more than 100, which Tenant t allows (maxResources.pids); set at most 100 or remove the field',
    ],
    ['as much as is allowed', { resources: { cpu: '1000m', memory: '1024Mi', pids: 100, disk: '2Gi' } }, ''],
  ]
  for (const [name, requested, expected] of cases)
    test(name, () => {
      const { violations } = applyPolicy(requested, [tenant(policy), pool(poolPolicy({ mode: 'Process' }))])
      equal(violations.map(({ field, message }) => `${field}: ${message}`).join('; '), expected)
    })

  test('no network that both allow', () => {
    const { violations } = applyPolicy({}, [
      tenant({ minimumIsolation: 'Sandbox', allowedNetworks: ['None'] }),
      pool({ allowedNetworks: ['Host'] }),
    ])
    equal(
      violations[0]?.message,
      'no network is in allowedNetworks of each of Tenant t: None; WorkerPool p: Host; let an administrator change one',
    )
  })
})

test('policies merge to what all of them allow', () => {
  deepEqual(
    mergePolicies([
      { minimumIsolation: 'Sandbox', allowedNetworks: ['Private', 'Host'], maxResources: { memory: '2Gi', cpu: '1' } },
      { minimumIsolation: 'Process', allowedNetworks: ['Host', 'None'], maxResources: { memory: '1500Mi', pids: 9 } },
      {},
    ]),
    { minimumIsolation: 'Sandbox', allowedNetworks: ['Host'], maxResources: { memory: '1500Mi', cpu: '1', pids: 9 } },
  )
  deepEqual(mergePolicies([{}]), {})
})
