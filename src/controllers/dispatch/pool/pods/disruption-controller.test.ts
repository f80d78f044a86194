import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../../test/support/eventually.ts'
import { labels, oarlockResources, runResource, systemNamespace, workerPoolResource, workerResource } from '../../../../api/index.ts'
import { namespaceResource } from '../../../../kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../../kubernetes/controller/index.ts'
import { describeResource } from '../../../../kubernetes/object/index.ts'
import { startTestServer } from '../../../../kubernetes/testing/index.ts'
import { addDisruptionController } from './disruption-controller.ts'
import { podResource } from './pod.ts'

type Body = { spec?: Record<string, unknown>; status?: object }
const nodeResource = describeResource<Body>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })
const budgetResource = describeResource<Body>({
  ...{ group: 'policy', version: 'v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets', scope: 'Namespaced' },
})

for (const { mode, podName, labelsOfPod, host } of [
  { mode: 'Pod', podName: 'w1', labelsOfPod: { [labels.pool]: 'p' }, host: 'elsewhere' },
  { mode: 'External', podName: 'workers-7f-x', labelsOfPod: { [labels.poolDeployment]: 'p' }, host: 'workers-7f-x' },
] as const)
  test(`marks the Pod of a busy worker, and cordons the worker with its node: mode ${mode}`, { timeout: 60_000 }, async () => {
    await using api = await startTestServer({ kinds: oarlockResources })
    const { client } = api
    const namespace = systemNamespace
    for (const name of [namespace, 'shop']) await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
    const pods = client.resource(podResource)
    const workers = client.resource(workerResource)
    const runs = client.resource(runResource)
    const nodes = client.resource(nodeResource)
    await client.resource(workerPoolResource).create({ metadata: { name: 'p' }, spec: { mode, lifecycle: 'Warm' } })
    const manager = new Manager({ client, log: silentLog })
    addDisruptionController(manager, { monotonicMs: () => performance.now() })
    await manager.start()
    try {
      await nodes.create({ metadata: { name: 'n1' } })
      const spec = { nodeName: 'n1', containers: [{ name: 'worker', image: 'i' }] }
      const own = mode === 'Pod' ? { pod: { namespace, serviceAccountName: 'oarlock-worker' } } : {}
      const { metadata } = await workers.create({ metadata: { name: 'w1' }, spec: { pool: 'p', slots: 1, lifecycle: 'Warm', ...own } })
      const owner = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', name: 'w1', uid: metadata.uid, controller: true }
      const ownerReferences = mode === 'Pod' ? [owner] : []
      await pods.create({ metadata: { name: podName, namespace, labels: labelsOfPod, ownerReferences }, spec })
      // Of a user, with the name and the labels of the worker.
      await pods.create({ metadata: { name: podName, namespace: 'shop', labels: labelsOfPod }, spec })
      await workers.patchStatus('w1', { status: { phase: 'Ready', host } })
      const stack = { engine: 'command' as const, source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }
      await runs.create({
        metadata: { name: 'r', namespace: 'shop' },
        spec: {
          ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'p', priority: 0, stack },
          ...{ stackRef: { name: 's', uid: 'u', generation: 1 }, workerName: 'w1' },
        },
      })

      const markOf = async () => (await pods.get(podName, { namespace })).metadata.labels?.[labels.busy]
      const isCordoned = async () => (await workers.get('w1')).spec.cordon === true
      await eventually(async () => (await markOf()) === 'true', 'the Pod to be marked busy')
      const budget = await eventually(() => client.resource(budgetResource).getOrUndefined('oarlock-busy-p', { namespace }), 'the budget')
      deepEqual(budget.spec?.selector, { matchLabels: { ...labelsOfPod, 'oarlock.dev/busy': 'true' } })
      equal(budget.metadata.ownerReferences, undefined)
      deepEqual(
        (await client.resource(budgetResource).listAll()).items.map(each => each.metadata.namespace),
        [namespace],
      )
      equal((await pods.get(podName, { namespace: 'shop' })).metadata.labels?.[labels.busy], undefined)

      await nodes.patch('n1', { spec: { unschedulable: true } }, { type: 'merge' })
      await eventually(isCordoned, 'the worker to be cordoned')
      equal(await markOf(), 'true')
      await runs.patchStatus('r', { status: { phase: 'Succeeded' } }, { namespace: 'shop' })
      await eventually(async () => (await markOf()) === 'false', 'the Pod to be marked idle')
      await nodes.patch('n1', { spec: { unschedulable: null } }, { type: 'merge' })
      await eventually(async () => !(await isCordoned()), 'the worker to be uncordoned')
    } finally {
      await manager.stop()
    }
  })
