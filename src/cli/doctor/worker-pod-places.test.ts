import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources, type Stack, stackResource, type WorkerPool, workerPoolResource } from '../../api/index.ts'
import { podWorkerBindings } from '../../app/manifests/index.ts'
import { namespaceResource, serviceAccountResource } from '../../kubernetes/client/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { readWorkerPodAccess, workerPodPlaces } from './worker-pod-places.ts'

type Pool = Pick<WorkerPool, 'metadata' | 'spec'>
const pool = (name: string, spec: Partial<Pool['spec']>) => ({ metadata: { name }, spec: { mode: 'Pod', ...spec } }) as Pool
const stack = (namespace: string, name: string, spec: Partial<Stack['spec']>) => ({
  metadata: { name, namespace },
  spec: {
    ...{ engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
    ...spec,
  } as Stack['spec'],
})
const template = (serviceAccountName: string) => ({ spec: { serviceAccountName } })

test('the places of Pods are the namespaces of pools, and of the Stacks whose pool creates Pods there', () => {
  const pools = [
    pool('processes', { mode: 'Process', namespace: 'x' }),
    pool('system', { namespace: 'oarlock-system' }),
    pool('apart', { namespace: 'apart', template: template('oarlock-worker-apart') }),
    pool('per-stack', { podNamespace: 'Stack', namespace: 'oarlock-system' }),
  ]
  const stacks = [
    stack('shop', 'a', { pool: 'per-stack' } as Partial<Stack['spec']>),
    stack('shop', 'b', { pool: 'per-stack', serviceAccountName: 'oarlock-worker-deploy' }),
    stack('lab', 'c', { pool: 'per-stack' }),
    stack('shop', 'd', { pool: 'per-stack' }),
    stack('other', 'e', { pool: 'apart' }),
  ]
  deepEqual(
    workerPodPlaces(pools, stacks as never).map(({ namespace, account, runs }) => `${namespace}/${account} ${runs}`),
    ['apart/oarlock-worker-apart all', 'lab/oarlock-worker own', 'shop/oarlock-worker own', 'shop/oarlock-worker-deploy own'],
  )
})

test('a namespace of a Stack lacks ServiceAccount and bindings until they are created', async () => {
  await using api = await startTestServer({ kinds: oarlockResources })
  const { client } = api
  for (const name of ['shop', 'oarlock-system']) await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  const template = { spec: { containers: [{ name: 'worker', image: 'example/oarlock' }] } }
  await client
    .resource(workerPoolResource)
    .create({ metadata: { name: 'per-stack' }, spec: { mode: 'Pod', podNamespace: 'Stack', template } })
  await client.resource(stackResource).create(stack('shop', 'app', { pool: 'per-stack' }))
  deepEqual(await readWorkerPodAccess(client, false), {
    namespaces: ['shop'],
    missing: [
      'ServiceAccount shop/oarlock-worker',
      'ClusterRoleBinding oarlock:pod-worker:shop:oarlock-worker',
      'RoleBinding shop/oarlock-worker-runs',
      'RoleBinding oarlock-system/oarlock-worker-lease-shop-oarlock-worker',
    ],
  })
  deepEqual((await readWorkerPodAccess(client, true)).missing, ['ServiceAccount shop/oarlock-worker'])

  await client.resource(serviceAccountResource).create({ metadata: { name: 'oarlock-worker', namespace: 'shop' } })
  for (const manifest of podWorkerBindings('shop')) {
    const resource = client.resource(await client.discover(manifest.apiVersion, manifest.kind))
    await resource.apply(manifest as never, { force: true })
  }
  deepEqual(await readWorkerPodAccess(client, false), { namespaces: ['shop'], missing: [] })
})
