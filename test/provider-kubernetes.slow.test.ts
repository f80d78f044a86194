/** The provider of examples/providers/kubernetes with a real kube-apiserver as the other cluster. */
import { deepEqual, equal } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Clusters } from '../examples/providers/kubernetes/clusters.ts'
import { kinds, type ObjectBody, objectResource, providerConfigResource } from '../examples/providers/kubernetes/kinds.ts'
import { kubernetesController } from '../examples/providers/kubernetes/provider.ts'
import { type Client, createClient, secretResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { findCondition, type KubeObject, type Resource } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { type Peer, peerMissing, startPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'

const skip = peerMissing() ?? false
const namespace = 'default'
const clusters = new Clusters()
let peer: Peer
let remote: Client
let api: TestServer
let manager: Manager

before(async () => {
  if (skip) return
  peer = await startPeer()
  remote = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  api = await startTestServer({ kinds })
  await api.client
    .resource(secretResource)
    .create({ metadata: { name: 'edge', namespace }, stringData: { kubeconfig: peerKubeconfig(peer) } })
  await api.client
    .resource(providerConfigResource)
    .create({ metadata: { name: 'default', namespace }, spec: { kubeconfigSecretRef: { name: 'edge' } } })
  manager = new Manager({ client: api.client, log: silentLog })
  manager.add(kubernetesController(clusters, { pollIntervalMs: 400, deletionCheckMs: 20 }))
  await manager.start()
})

after(async () => {
  if (skip) return
  await manager.stop({ graceMs: 2_000 })
  await clusters.close()
  await api.close()
  await remote.close()
  await peer.close()
})

const isTrue = ({ status }: KubeObject<ObjectBody>, type: string) => findCondition(status?.conditions, type)?.status === 'True'

test('kube-apiserver: a Deployment is created, not written while nothing differs, corrected, scaled and deleted', {
  skip,
  timeout: 180_000,
}, async () => {
  const objects = api.client.resource(objectResource)
  const manifest = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'web' } },
      // Defaults of the server, such as the protocol of a port and the policy of restarts, are no differences.
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'web', image: 'web:1', ports: [{ containerPort: 80 }] }] },
      },
    },
  }
  await objects.create({
    metadata: { name: 'web', namespace },
    spec: { forProvider: { manifest, readiness: 'Exists', force: true } } as never,
  })
  const isReady = () =>
    eventually(
      () => objects.get('web', { namespace }),
      object => isTrue(object, 'Ready') && isTrue(object, 'Synced'),
      60_000,
    )
  await isReady()
  const deployments = remote.resource((await remote.discover('apps/v1', 'Deployment')) as Resource<{ spec: { replicas: number } }>)
  const created = await deployments.get('web', { namespace })
  await new Promise(resolve => setTimeout(resolve, 2_000))
  equal((await deployments.get('web', { namespace })).metadata.resourceVersion, created.metadata.resourceVersion)
  await deployments.patch('web', { spec: { replicas: 7 } }, { type: 'merge', namespace })
  await eventually(async () => (await deployments.get('web', { namespace })).spec.replicas === 1, 'the number of replicas to be corrected')
  await objects.patch('web', { spec: { forProvider: { manifest: { spec: { replicas: 3 } } } } } as object, { type: 'merge', namespace })
  await eventually(async () => (await deployments.get('web', { namespace })).spec.replicas === 3, 'three replicas')
  deepEqual(
    (await deployments.get('web', { namespace })).metadata.managedFields
      ?.filter(({ operation }) => operation === 'Apply')
      .map(({ manager: name }) => name),
    ['object/default/web'],
  )
  await objects.delete('web', { namespace })
  await eventually(async () => (await objects.getOrUndefined('web', { namespace })) === undefined, 'the Object to be gone', 60_000)
  equal(await deployments.getOrUndefined('web', { namespace }), undefined)
})
