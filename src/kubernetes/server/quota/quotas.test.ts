import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventually } from '../../../../test/support/eventually.ts'
import { isReason, type KubeObject } from '../../object/index.ts'
import { startTestServer } from '../server.testing.ts'
import { Store } from '../storage/index.ts'
import { Quotas } from './index.ts'

type Held = { table: 'pods' | 'services' | 'configmaps' | 'persistentvolumeclaims'; namespace: string; name: string; amount: number }
type Step = { do: 'put' | 'remove'; held: Held; waits: boolean }

const held: fc.Arbitrary<Held> = fc.record({
  table: fc.constantFrom('pods', 'services', 'configmaps', 'persistentvolumeclaims'),
  namespace: fc.constantFrom('a', 'b'),
  name: fc.constantFrom('x', 'y', 'z', 'u', 'v'),
  amount: fc.integer({ min: 1, max: 4 }),
})
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('put', 'put', 'put', 'remove'),
  held,
  waits: fc.boolean(),
})

const hard = {
  pods: '4',
  'requests.cpu': '8',
  services: '3',
  'services.nodeports': '6',
  'count/configmaps': '3',
  'requests.storage': '9Gi',
  persistentvolumeclaims: '4',
}

function objectOf({ table, namespace, name, amount }: Held): KubeObject {
  const spec = {
    pods: { containers: [{ name: 'c', resources: { requests: { cpu: String(amount) } } }] },
    services: { type: 'NodePort', ports: Array.from({ length: amount }, (_, i) => ({ port: i + 1 })) },
    configmaps: {},
    persistentvolumeclaims: { resources: { requests: { storage: `${amount}Gi` } } },
  }[table]
  const metadata = { namespace, name, uid: name, resourceVersion: '', creationTimestamp: '' }
  return { apiVersion: 'v1', kind: 'Thing', metadata, spec }
}

function quotaOf(namespace: string, name: string, spec: object): KubeObject {
  const metadata = { namespace, name, uid: name, resourceVersion: '', creationTimestamp: '' }
  return { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec }
}

/** The usage of the objects of a namespace, computed naively. */
function naive(all: Iterable<Held>, namespace: string): Record<string, number> {
  const used: Record<string, number> = Object.fromEntries(Object.keys(hard).map(name => [name, 0]))
  const add = (name: string, amount: number) => {
    used[name] = used[name]! + amount
  }
  for (const { table, namespace: within, amount } of all) {
    if (within !== namespace) continue
    add(table === 'configmaps' ? 'count/configmaps' : table, 1)
    if (table === 'pods') add('requests.cpu', amount)
    if (table === 'services') add('services.nodeports', amount)
    if (table === 'persistentvolumeclaims') add('requests.storage', amount)
  }
  return used
}

const limitOf = (name: string) => Number.parseInt(hard[name as keyof typeof hard], 10)

test('agrees with a naive count on what to reject and on the usage, with pending writes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async steps => {
      const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-quota-'))
      const store = await Store.open({ dataDir, synchronous: 'OFF' })
      try {
        const quotas = new Quotas(store)
        await store.put(store.table('resourcequotas'), undefined, quotaOf('a', 'q', { hard }))
        const model = new Map<string, Held>()
        const writes: Promise<unknown>[] = []
        for (const { do: what, held: next, waits } of steps) {
          const table = store.table(next.table)
          const key = `${next.namespace}/${next.name}`
          const id = `${next.table} ${key}`
          const head = store.head(table, key)
          const before = head && (JSON.parse(head.text) as KubeObject)
          if (what === 'remove') {
            if (!head || !before) continue
            model.delete(id)
            writes.push(store.remove(table, head, before))
          } else {
            const has = model.get(id)
            // The resources of a Pod do not change, and a ConfigMap is counted once.
            if (has && (next.table === 'pods' || next.table === 'configmaps')) continue
            const [was, will] = [naive(model.values(), 'a'), naive(new Map([...model, [id, next]]).values(), 'a')]
            const isOver = Object.keys(hard).some(name => will[name]! > was[name]! && will[name]! > limitOf(name))
            const admit = () => quotas.admit({ group: '', plural: next.table, storageName: next.table }, objectOf(next), before)
            if (isOver) {
              assert.throws(admit, error => isReason(error, 'Forbidden') && /exceeded quota: q, requested: /.test(error.message))
              continue
            }
            admit()
            model.set(id, next)
            writes.push(store.put(table, head, objectOf(next)))
          }
          if (waits) await writes.at(-1)
        }
        // A quota that is created later counts the existing objects.
        writes.push(store.put(store.table('resourcequotas'), undefined, quotaOf('b', 'late', { hard })))
        await Promise.all(writes)
        for (const [namespace, name] of [
          ['a', 'q'],
          ['b', 'late'],
        ] as const) {
          const status = quotas.status(namespace, name)
          const used = Object.fromEntries(Object.entries(status?.used ?? {}).map(([limit, amount]) => [limit, Number.parseInt(amount, 10)]))
          assert.deepEqual(used, naive(model.values(), namespace))
          assert.deepEqual(status, new Quotas(store).status(namespace, name), 'equals a new count')
        }
      } finally {
        await store.close()
        rmSync(dataDir, { recursive: true, force: true })
      }
    }),
    { numRuns: 25 },
  )
})

test('admits concurrent creates up to the limit and rejects the others', async () => {
  const server = await startTestServer()
  try {
    const base = '/api/v1/namespaces/default'
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard: { configmaps: '5' } } }
    assert.equal((await server.call(`${base}/resourcequotas`, { body: quota })).code, 201)
    const create = (name: string) =>
      server.call(`${base}/configmaps`, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } } })
    const codes = (await Promise.all(Array.from({ length: 30 }, (_, i) => create(`c-${i}`)))).map(({ code }) => code)
    assert.deepEqual(Object.fromEntries([201, 403].map(code => [code, codes.filter(is => is === code).length])), { 201: 5, 403: 25 })
    await eventually(async () => {
      const { body } = await server.call(`${base}/resourcequotas/q`)
      const { used } = (body.status ?? {}) as unknown as { used?: { configmaps?: string } }
      return used?.configmaps === '5'
    }, 'the quota to report five ConfigMaps')
  } finally {
    await server.close()
  }
})

for (const [what, spec, counts] of [
  ['BestEffort', { scopes: ['BestEffort'] }, { plain: true, sized: false, ends: true, urgent: true }],
  ['NotBestEffort', { scopes: ['NotBestEffort'] }, { plain: false, sized: true, ends: false, urgent: false }],
  ['Terminating', { scopes: ['Terminating'] }, { plain: false, sized: false, ends: true, urgent: false }],
  ['NotTerminating and BestEffort', { scopes: ['NotTerminating', 'BestEffort'] }, { plain: true, sized: false, ends: false, urgent: true }],
  [
    'PriorityClass in',
    { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }] } },
    { plain: false, sized: false, ends: false, urgent: true },
  ],
  [
    'PriorityClass not in',
    { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'NotIn', values: ['high'] }] } },
    { plain: true, sized: true, ends: true, urgent: false },
  ],
] as const) {
  test(`a quota for ${what} counts only matching Pods`, async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-quota-'))
    const store = await Store.open({ dataDir, synchronous: 'OFF' })
    try {
      const quotas = new Quotas(store)
      await store.put(store.table('resourcequotas'), undefined, quotaOf('a', 'none', { ...spec, hard: { pods: '0' } }))
      const pods = {
        plain: { spec: {}, status: { qosClass: 'BestEffort' } },
        sized: { spec: {}, status: { qosClass: 'Burstable' } },
        ends: { spec: { activeDeadlineSeconds: 5 }, status: { qosClass: 'BestEffort' } },
        urgent: { spec: { priorityClassName: 'high' }, status: { qosClass: 'BestEffort' } },
      }
      const rejected = Object.entries(pods).map(([name, pod]) => {
        const object = { ...quotaOf('a', name, {}), kind: 'Pod', ...pod }
        try {
          quotas.admit({ group: '', plural: 'pods', storageName: 'pods' }, object, undefined)
          return [name, false]
        } catch {
          return [name, true]
        }
      })
      assert.deepEqual(Object.fromEntries(rejected), counts)
    } finally {
      await store.close()
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
}
