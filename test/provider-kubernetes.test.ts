/** The provider of examples/providers/kubernetes: one API server has the Objects, another one is the other cluster. */
import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { Clusters, type Connection } from '../examples/providers/kubernetes/clusters.ts'
import { parseFieldPath, readField, withField } from '../examples/providers/kubernetes/field-path.ts'
import { kinds, type ObjectBody, objectResource, providerConfigResource } from '../examples/providers/kubernetes/kinds.ts'
import { kubernetesController } from '../examples/providers/kubernetes/provider.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { findCondition, type KubeObject, type Resource } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'

const namespace = 'default'
let api: TestServer
let remote: TestServer
let manager: Manager

/** Counts the reconciles of each Object. */
class CountedClusters extends Clusters {
  readonly counts = new Map<string, number>()

  override async connect(request: Parameters<Clusters['connect']>[0]): Promise<Connection> {
    const { name } = request.object.metadata
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    return await super.connect(request)
  }
}
const clusters = new CountedClusters()
let configMapResource: Resource

type ConfigMap = { data?: Record<string, string> }
type ForProvider = ObjectBody['spec']['forProvider'] & { manifest: object }

before(async () => {
  ;[api, remote] = await Promise.all([startTestServer({ kinds }), startTestServer()])
  configMapResource = await remote.client.discover('v1', 'ConfigMap')
  manager = new Manager({ client: api.client, log: silentLog })
  manager.add(kubernetesController(clusters, { pollIntervalMs: 400, deletionCheckMs: 20 }))
  await manager.start()
})

after(async () => {
  await manager.stop({ graceMs: 2_000 })
  await clusters.close()
  await api.close()
  await remote.close()
})

const objects = () => api.client.resource(objectResource)
const configMaps = () => remote.client.resource(configMapResource as Resource<ConfigMap>)
const conditionOf = ({ status }: KubeObject<ObjectBody>, type: string) => findCondition(status?.conditions, type)
const messageOf = async (name: string, type = 'Synced') => conditionOf(await objects().get(name, { namespace }), type)?.message ?? ''
const hasMessage = (name: string, text: RegExp, type = 'Synced') =>
  eventually(async () => text.test(await messageOf(name, type)), `${type} of ${name} to match ${text}`)
const isReady = (name: string) =>
  eventually(
    () => objects().get(name, { namespace }),
    object => conditionOf(object, 'Ready')?.status === 'True' && conditionOf(object, 'Synced')?.status === 'True',
  )
const create = (name: string, forProvider: object, rest: object = {}) =>
  objects().create({ metadata: { name, namespace }, spec: { forProvider: forProvider as ForProvider, ...rest } })
const configMap = (name: string, data: Record<string, string>) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data },
})

test('the objects of deploy/example.yaml exist in the other cluster, one with a field of the other', async () => {
  const text = readFileSync('examples/providers/kubernetes/deploy/example.yaml', 'utf8')
  for (const document of parseAllDocuments(text)) {
    const object = document.toJSON() as KubeObject & { stringData?: object }
    if (object.stringData) object.stringData = { kubeconfig: readFileSync(remote.kubeconfigPath, 'utf8') }
    await api.client.resource(await api.client.discover(object.apiVersion, object.kind)).create(object)
  }
  await isReady('shop-settings')
  const { data } = await configMaps().get('shop-settings', { namespace })
  deepEqual(data, { 'log-level': 'info', port: '80', region: 'eu-west-1' })
})

test('a change in the other cluster is corrected, and an object that is as wanted is not written', async () => {
  await create('a', { manifest: configMap('a', { x: '1' }) })
  await isReady('a')
  await configMaps().patch('a', { data: { x: '2', other: 'kept' } }, { type: 'merge', namespace, fieldManager: 'someone' })
  const conflict = /data\.x is managed by "someone": remove it from spec\.forProvider\.manifest, or set spec\.forProvider\.force/
  await hasMessage('a', conflict)
  await objects().patch('a', { spec: { forProvider: { force: true } } }, { type: 'merge', namespace })
  await isReady('a')
  deepEqual((await configMaps().get('a', { namespace })).data, { x: '1', other: 'kept' })
  await eventually(
    () => objects().get('a', { namespace }),
    ({ status }) => (status?.atProvider?.manifest as ConfigMap | undefined)?.data?.x === '1',
  )
  const { resourceVersion } = (await configMaps().get('a', { namespace })).metadata
  const before = (await objects().get('a', { namespace })).metadata.resourceVersion
  const polls = () => clusters.counts.get('a') ?? 0
  const untilPoll = polls() + 4
  await eventually(() => polls() >= untilPoll, 'three polls to end and one to begin')
  equal((await configMaps().get('a', { namespace })).metadata.resourceVersion, resourceVersion)
  equal((await objects().get('a', { namespace })).metadata.resourceVersion, before)
})

test('a field that is removed from the manifest is removed in the other cluster', async () => {
  await create('b', { manifest: configMap('b', { x: '1', y: '1' }) })
  await isReady('b')
  await objects().patch('b', { spec: { forProvider: { manifest: { data: { y: null } } } } } as object, { type: 'merge', namespace })
  await eventually(async () => (await configMaps().get('b', { namespace })).data?.y === undefined, 'y to be removed')
})

test('values of a Secret are published as connection details and are not in the status', async () => {
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login', namespace }, stringData: { password: 'it is secret' } }
  const connectionDetails = [{ fieldPath: 'data.password', key: 'password' }]
  await create('login', { manifest, connectionDetails, readiness: 'Exists' }, { writeConnectionSecretToRef: { name: 'published' } })
  const object = await isReady('login')
  equal(JSON.stringify(object.status).includes(Buffer.from('it is secret').toString('base64')), false)
  deepEqual((object.status?.atProvider?.manifest as ConfigMap | undefined)?.data, { password: '' })
  const { data } = await api.client.resource(secretResource).get('published', { namespace })
  equal(Buffer.from(data?.password ?? '', 'base64').toString(), 'it is secret')
})

test('an Object waits for what it depends on, and names it', async () => {
  await create('late', { manifest: configMap('late', {}), dependsOn: [{ name: 'first' }] })
  await hasMessage('late', /create failed: waiting for Object first, which does not exist/)
  equal(await configMaps().getOrUndefined('late', { namespace }), undefined)
  await create('first', { manifest: configMap('first', {}) })
  await isReady('late')
  const from = { apiVersion: 'v1', kind: 'ConfigMap', name: 'local', fieldPath: 'data.x' }
  await create('patched', { manifest: configMap('patched', {}), patches: [{ from, toFieldPath: 'data.copied' }] })
  await hasMessage('patched', /waiting for ConfigMap local, which does not exist/)
  await api.client
    .resource(configMapResource as Resource<ConfigMap>)
    .create({ metadata: { name: 'local', namespace }, data: { x: 'here' } })
  await isReady('patched')
  deepEqual((await configMaps().get('patched', { namespace })).data, { copied: 'here' })
})

test('values of a Secret are copied into Secrets only, and not from what is observed of a remote Secret', async () => {
  await api.client.resource(secretResource).create({ metadata: { name: 'source', namespace }, stringData: { password: 'p' } })
  const from = { apiVersion: 'v1', kind: 'Secret', name: 'source', fieldPath: 'data.password' }
  await create('leak', { manifest: configMap('leak', {}), patches: [{ from, toFieldPath: 'data.x' }] })
  await hasMessage(
    'leak',
    /data\.password of Secret source can only be copied into data or stringData of a Secret, not into data\.x of a ConfigMap/,
  )
  const masked = { name: 'login', fieldPath: 'status.atProvider.manifest.data.password' }
  const secret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace } })
  await create('masked', { manifest: secret('masked'), patches: [{ from: masked, toFieldPath: 'data.x' }] })
  await hasMessage('masked', /is a value of a remote Secret, which is not in the status/)
  await create('copied', { manifest: secret('copied'), patches: [{ from, toFieldPath: 'data.x' }] })
  const copied = await isReady('copied')
  equal(JSON.stringify(copied.status).includes(Buffer.from('p').toString('base64')), false)
})

test('the readiness of a kind with a status follows it', async () => {
  const deployment = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  }
  await create('web', { manifest: deployment })
  await hasMessage('web', /./, 'Ready')
  equal(conditionOf(await objects().get('web', { namespace }), 'Ready')?.status, 'False')
})

test('observe-only finds an object that exists, changes nothing, and leaves it when the Object is deleted', async () => {
  await configMaps().create({ metadata: { name: 'theirs', namespace }, data: { x: 'theirs' } })
  await create('theirs', { manifest: configMap('theirs', { x: 'ours' }), force: true }, { managementPolicies: ['Observe'] })
  await eventually(
    () => objects().get('theirs', { namespace }),
    object => conditionOf(object, 'Ready')?.status === 'True' && /data\.x/.test(conditionOf(object, 'Synced')?.message ?? ''),
  )
  equal((await configMaps().get('theirs', { namespace })).data?.x, 'theirs')
  await objects().delete('theirs', { namespace })
  await eventually(async () => (await objects().getOrUndefined('theirs', { namespace })) === undefined, 'the Object to be gone')
  equal((await configMaps().get('theirs', { namespace })).data?.x, 'theirs')
})

test('a deleted Object waits until the finalizers of its remote object are gone', async () => {
  await create('held', { manifest: { ...configMap('held', {}), metadata: { name: 'held', namespace, finalizers: ['example.com/hold'] } } })
  await isReady('held')
  await objects().delete('held', { namespace })
  await eventually(async () => (await configMaps().get('held', { namespace })).metadata.deletionTimestamp !== undefined, 'the deletion')
  await eventually(
    () => objects().get('held', { namespace }),
    object => conditionOf(object, 'Ready')?.reason === 'Deleting',
  )
  await configMaps().patch('held', { metadata: { finalizers: null } }, { type: 'merge', namespace })
  await eventually(async () => (await objects().getOrUndefined('held', { namespace })) === undefined, 'the Object to be gone')
})

test('what cannot work is an error that names what to change', async () => {
  await create('wrong', { manifest: { apiVersion: 'example.com/v1', kind: 'Unknown', metadata: { namespace } } })
  await hasMessage('wrong', /observe failed: .*Unknown/)
  await create('lost', { manifest: configMap('lost', {}) }, { providerConfigRef: { name: 'nowhere' } })
  await hasMessage('lost', /connect failed: ProviderConfig default\/nowhere does not exist/)
  const kubeconfig = JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a', contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }] },
    clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'a', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: ['/tmp/executed'] } } }],
  })
  await api.client.resource(secretResource).create({ metadata: { name: 'exec', namespace }, stringData: { kubeconfig } })
  await api.client
    .resource(providerConfigResource)
    .create({ metadata: { name: 'exec', namespace }, spec: { kubeconfigSecretRef: { name: 'exec' } } })
  await create('exec', { manifest: configMap('exec', {}) }, { providerConfigRef: { name: 'exec' } })
  await hasMessage('exec', /connect failed: .*exec/)
  const renamed = objects().patch('a', { spec: { forProvider: { manifest: { metadata: { name: 'z' } } } } } as object, {
    type: 'merge',
    namespace,
  })
  await rejects(renamed, /kind, metadata\.name and metadata\.namespace cannot be changed/)
  const regrouped = objects().patch('a', { spec: { forProvider: { manifest: { apiVersion: 'example.com/v1' } } } } as object, {
    type: 'merge',
    namespace,
  })
  await rejects(regrouped, /the group of apiVersion cannot be changed/)
})

test('a connection detail that the remote object does not have yet prevents neither a correction nor the deletion', async () => {
  const connectionDetails = [
    { fieldPath: 'data.x', key: 'x' },
    { fieldPath: 'data.later', key: 'later' },
  ]
  const writeConnectionSecretToRef = { name: 'partial' }
  await create('partial', { manifest: configMap('partial', { x: '1' }), connectionDetails }, { writeConnectionSecretToRef })
  await hasMessage('partial', /connectionDetails: ConfigMap partial has no field data\.later/, 'Ready')
  equal(conditionOf(await objects().get('partial', { namespace }), 'Synced')?.status, 'True')
  await configMaps().patch('partial', { data: { x: null } }, { type: 'merge', namespace, fieldManager: 'someone' })
  await eventually(async () => (await configMaps().get('partial', { namespace })).data?.x === '1', 'x to be corrected')
  await objects().delete('partial', { namespace })
  await eventually(async () => (await objects().getOrUndefined('partial', { namespace })) === undefined, 'the Object to be gone')
  equal(await configMaps().getOrUndefined('partial', { namespace }), undefined)
})

test('a field that cannot be changed is an error that names it, and the Object can be deleted', async () => {
  const manifest = { ...configMap('fixed', { x: '1' }), immutable: true }
  await create('fixed', { manifest })
  await isReady('fixed')
  await objects().patch('fixed', { spec: { forProvider: { manifest: { data: { x: '2' } } } } } as object, { type: 'merge', namespace })
  await hasMessage('fixed', /data.*immutable/)
  equal((await configMaps().get('fixed', { namespace })).data?.x, '1')
  await objects().delete('fixed', { namespace })
  await eventually(async () => (await configMaps().getOrUndefined('fixed', { namespace })) === undefined, 'the ConfigMap to be gone')
})

test('two Objects with the same remote object are in conflict', async () => {
  await create('one', { manifest: configMap('shared', { x: '1' }) })
  await isReady('one')
  await create('two', { manifest: configMap('shared', { x: '2' }) })
  await hasMessage('two', /data\.x is managed by "object\/default\/one"/)
  equal((await configMaps().get('shared', { namespace })).data?.x, '1')
})

test('a new kubeconfig is used without a restart', async () => {
  const secrets = api.client.resource(secretResource)
  const { data } = await secrets.get('edge', { namespace })
  const broken = Buffer.from(data?.kubeconfig ?? '', 'base64')
    .toString()
    .replace(/server: .*/, 'server: https://127.0.0.1:1')
  await secrets.patch('edge', { stringData: { kubeconfig: broken } }, { type: 'merge', namespace })
  await hasMessage('b', /ECONNREFUSED|127\.0\.0\.1:1/)
  await secrets.patch('edge', { data: { kubeconfig: data?.kubeconfig } }, { type: 'merge', namespace })
  await isReady('b')
})

test('field paths are read and set', () => {
  deepEqual(parseFieldPath('metadata.annotations["example.com/a"]'), ['metadata', 'annotations', 'example.com/a'])
  deepEqual(parseFieldPath('spec.containers[0].image'), ['spec', 'containers', 0, 'image'])
  equal(readField({ a: [{ b: 1 }] }, 'a[0].b'), 1)
  equal(readField({ a: 1 }, 'a.b.c'), undefined)
  deepEqual(withField({ a: { b: 1 } }, 'a.c.d', 2), { a: { b: 1, c: { d: 2 } } })
  deepEqual(withField({ a: [1, 2] }, 'a[1]', 3), { a: [1, 3] })
  for (const path of ['', '.', 'a..b', 'a[', 'a[x]']) throws(() => parseFieldPath(path), /TypeError: the field path/)
  throws(() => withField({}, '__proto__.x', 1), /__proto__/)
  throws(() => withField({ a: 1 }, 'a.b', 1), /no object/)
})
