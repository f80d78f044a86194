/** The attacks of `pod-worker-rows.ts` with the token that a real kubelet has given to a worker Pod, on a real cluster. */
import { equal, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemNamespace } from '../../src/api/index.ts'
import { makeWorkerPod } from '../../src/controllers/dispatch/pool/pods/make-pod.ts'
import { serviceAccountResource } from '../../src/kubernetes/client/index.ts'
import { Cluster } from '../cluster/cluster.ts'
import { pauseImage } from '../cluster/node.ts'
import { clusterMissing } from '../cluster/programs.ts'
import { createPool, type Target } from '../conformance/target.ts'
import { eventually } from '../support/eventually.ts'
import { checkRows } from './check-rows.ts'
import { createFixture } from './fixture.ts'
import { foreignRows, ownRows, podWorkerRows } from './pod-worker-rows.ts'
import { createPodWorker, podResource, registerPodWorker } from './pod-workers.ts'

const skip = clusterMissing() ?? false

test('a real cluster: the token that the kubelet gives to a worker Pod allows what the worker may do, and nothing after its Pod is gone', {
  skip,
  timeout: 900_000,
}, async () => {
  const cluster = await Cluster.start()
  const target = await administratorOf(cluster)
  try {
    const fixture = await createFixture(target)
    try {
      const { client } = fixture
      const pod = { namespace: systemNamespace, serviceAccountName: 'oarlock-worker' }
      const worker = await createPodWorker(client, fixture.createPodRun, 'r1', pod)
      const template = { spec: { containers: [{ name: 'worker', image: pauseImage, imagePullPolicy: 'IfNotPresent' }] } }
      const pool = {
        ...(await client.discover('oarlock.dev/v1alpha1', 'WorkerPool')),
        metadata: { name: 'pods' },
        spec: { mode: 'Pod', template },
      }
      const pods = client.resource(podResource)
      const plan = makeWorkerPod({ pool: pool as never, worker, environment: {} })
      const { uid } = (await pods.create(plan as never)).metadata
      const isRunning = async () => (await pods.get('r1', { namespace: systemNamespace })).status?.phase === 'Running'
      await eventually(isRunning, 'the Pod to run', 120_000)

      const [node] = cluster.nodes
      const volume = join(cluster.directory, 'n1', 'kubelet/pods', uid, 'volumes/kubernetes.io~projected/oarlock-credential')
      const file = (name: string) => readFileSync(join(`/proc/${node!.program('kubelet').pid}/root`, volume, name), 'utf8')
      fixture.tokens.r1 = file('token')
      const claims = JSON.parse(Buffer.from(fixture.tokens.r1.split('.')[1]!, 'base64url').toString()) as Claims
      equal(claims['kubernetes.io'].pod.uid, uid)
      ok(claims.exp - claims.iat >= 3_600)
      ok(file('ca.crt').includes('BEGIN CERTIFICATE'))

      await registerPodWorker(client, fixture.createPodRun, 'r1', { namespace: systemNamespace, uid })
      const [probe] = foreignRows('r1')
      await eventually(async () => (await fixture.send('api', 'r1', probe!)).code === 403, 'the policies to be in effect')
      await checkRows(fixture, [...ownRows('r1', uid), ...foreignRows('r1'), ...podWorkerRows(fixture.podUids)], 'kubernetes')

      await pods.delete('r1', { namespace: systemNamespace, gracePeriodSeconds: 0 })
      const [read] = ownRows('r1', uid)
      const codes = async () => [(await fixture.send('api', 'r1', read!)).code, (await fixture.send('stores', 'r1', state)).code]
      const state = { method: 'GET', path: '/state/shop/of-r1/run/of-r1-1/state', headers: { 'oarlock-epoch': '1' } }
      await eventually(async () => (await codes()).every(code => code === 401), 'the token to be rejected', 60_000)
    } finally {
      await fixture.close()
    }
  } finally {
    await target.pool.destroy()
    await cluster.close()
  }
})

type Claims = { iat: number; exp: number; 'kubernetes.io': { pod: { uid: string } } }

/** The API server as an administrator with a token, whom the fixture needs. */
async function administratorOf({ client }: Cluster): Promise<Target> {
  const namespace = 'kube-system'
  await client.resource(serviceAccountResource).create({ metadata: { name: 'fixture', namespace } })
  await client.resource(await client.discover('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding')).create({
    metadata: { name: 'fixture' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'fixture', namespace }],
  } as never)
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/fixture/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const { status } = (await (await client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
  return { url: client.server, tokens: { admin: status.token }, pool: createPool(client.server), close: async () => {} }
}
