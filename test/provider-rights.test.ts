/** deploy/provider.yaml of each provider under examples/providers grants what the provider needs, and nothing that it never uses. */
import { deepEqual } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { ansibleRunOptions } from '../examples/providers/ansible/ansible-run.ts'
import * as ansible from '../examples/providers/ansible/kinds.ts'
import { Clusters } from '../examples/providers/kubernetes/clusters.ts'
import * as kubernetes from '../examples/providers/kubernetes/kinds.ts'
import { kubernetesController } from '../examples/providers/kubernetes/provider.ts'
import * as postgresql from '../examples/providers/postgresql/kinds.ts'
import { postgresqlControllers } from '../examples/providers/postgresql/provider.ts'
import { runResource, stackResource } from '../src/api/index.ts'
import { type ManagedBody, managed } from '../src/controllers/managed/index.ts'
import { type Client, createClient, leaseResource, secretResource } from '../src/kubernetes/client/index.ts'
import { type Controller, Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { bucketLabel, bucketOf } from '../src/kubernetes/controller/sharding/index.ts'
import { ringLeaseName } from '../src/kubernetes/controller/sharding/lease-names.ts'
import { type CustomResource, findCondition, isConditionTrue, type KubeObject, type Resource } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'
import { InstantStacks } from './support/instant-stacks.ts'
import { Postgres, postgresMissing } from './support/postgres.ts'
import { RightsRecorder } from './support/rights-recorder.ts'

type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] }
type Role = KubeObject & { rules: Rule[] }

/** A provider in operation: what it connects to, and its controllers. */
type Running = {
  /** Of the Secret in example.yaml, which has others first, with which nothing can be reached. */
  readonly credentials?: Record<string, string>
  controllers(): Controller[]
  /** Creates an object whose owner does not exist: the owner is looked for. */
  createOrphan?(): Promise<void>
  stop(): Promise<void>
}

type Provider = {
  readonly kinds: readonly CustomResource<unknown>[]
  readonly skip: string | false
  start(client: Client): Promise<Running>
}

const options = { lock: 'shard', pollIntervalMs: 400, deletionCheckMs: 20 } as const

const providers: Readonly<Record<string, Provider>> = {
  postgresql: {
    kinds: postgresql.kinds,
    skip: postgresMissing ?? false,
    async start() {
      const server = await Postgres.start()
      return { credentials: { url: server.url }, controllers: () => postgresqlControllers(options), stop: () => server.stop() }
    },
  },
  kubernetes: {
    kinds: kubernetes.kinds,
    skip: false,
    async start() {
      const remote = await startTestServer()
      const clusters = new Clusters()
      const stop = async () => {
        await clusters.close()
        await remote.close()
      }
      const kubeconfig = readFileSync(remote.kubeconfigPath, 'utf8')
      return { credentials: { kubeconfig }, controllers: () => [kubernetesController(clusters, options)], stop }
    },
  },
  ansible: {
    kinds: [...ansible.kinds, stackResource, runResource],
    skip: false,
    async start(client) {
      const stacks = new InstantStacks(client, '/tmp/motd')
      stacks.start()
      const uid = '6f6c8d1e-0000-4000-8000-000000000000'
      const owner = { apiVersion: 'ansible.oarlock.dev/v1alpha1', kind: 'AnsibleRun', name: 'gone', uid, controller: true }
      const metadata = {
        name: 'orphan',
        namespace: 'default',
        // Until it was seen, garbage collection must not delete it.
        finalizers: ['example.com/keep'],
        labels: { [bucketLabel]: `${bucketOf(uid)}` },
        ownerReferences: [owner],
      }
      return {
        controllers: () => [managed({ ...ansibleRunOptions(), ...options })],
        createOrphan: async () => {
          await client
            .resource(stackResource)
            .create({ metadata, spec: { engine: 'ansible', source: { inline: { files: { 'site.yml': '[]' } } } } } as never)
        },
        stop: () => stacks.stop(),
      }
    },
  },
}

const documentsOf = (path: string): KubeObject[] => parseAllDocuments(readFileSync(path, 'utf8')).map(document => document.toJSON())

test('every example provider is checked', () => {
  deepEqual(readdirSync('examples/providers').sort(), Object.keys(providers).sort())
})

for (const [name, { kinds, skip, start }] of Object.entries(providers)) {
  test(`the roles of provider ${name} are enough, and every rule is used`, { skip }, async () => {
    await using api = await startTestServer({ kinds })
    const directory = `examples/providers/${name}/deploy`
    const roles: Role[] = []
    for (const document of documentsOf(`${directory}/provider.yaml`)) {
      await api.client.resource(await api.client.discover(document.apiVersion, document.kind)).create(document)
      if (/^(Cluster)?Role$/.test(document.kind)) roles.push(document as Role)
    }
    const running = await start(api.client)
    const used = new Set<string>()
    const rejected: string[] = []
    const namespace = `provider-${name}`
    // Found by whichever replica creates the ring first, and read there.
    await api.client.resource(leaseResource).create({ metadata: { name: ringLeaseName(namespace), namespace }, spec: {} })
    const replicas = await Promise.all(
      ['a', 'b'].map(async identity => {
        const client = new RightsRecorder(await clientOfAccount(api, namespace), used, rejected)
        const manager = new Manager({ client, log: silentLog, shards: { name: namespace, namespace, slots: 2, identity } })
        for (const controller of running.controllers()) manager.add(controller)
        await manager.start()
        return { client, manager }
      }),
    )
    try {
      await running.createOrphan?.()
      await exercise(api.client, documentsOf(`${directory}/example.yaml`), running.credentials, replicas)
    } finally {
      for (const { client, manager } of replicas) {
        await manager.stop({ graceMs: 2_000 })
        await client.close()
      }
      await running.stop()
    }
    deepEqual(rejected, [])
    const granted = roles.flatMap(({ rules }) => rules.flatMap(rightsOf))
    // API servers before 1.32 do not list by a watch: then an informer lists.
    const isUsed = (right: string) => used.has(right) || used.has(right.replace(/^list /, 'watch '))
    deepEqual(
      granted.filter(right => !isUsed(right)),
      [],
    )
  })
}

/** Creates the objects, changes one, lets the first replica go, and deletes all of them. */
async function exercise(
  client: Client,
  documents: readonly KubeObject[],
  credentials: Record<string, string> | undefined,
  [first]: readonly { manager: Manager }[],
): Promise<void> {
  const handle = async ({ apiVersion, kind }: KubeObject) =>
    client.resource((await client.discover(apiVersion, kind)) as Resource<ManagedBody>)
  const objects: KubeObject<ManagedBody>[] = []
  const spoiled = documents.find(({ kind }) => kind === 'Secret') as KubeObject & { stringData: object }
  for (const document of documents) {
    const object = document as KubeObject & { stringData?: object; spec?: { forProvider?: object } }
    // Nothing can be reached at first: the same Event is recorded more than once.
    if (object.stringData && credentials) object.stringData = Object.fromEntries(Object.keys(object.stringData).map(key => [key, 'wrong']))
    await (await handle(object)).create(object)
    if (object.spec?.forProvider) objects.push(object as KubeObject<ManagedBody>)
  }
  if (credentials) await recover(client, spoiled.metadata.name, credentials)
  const eachIs = async (what: string, test: (object: KubeObject<ManagedBody> | undefined) => boolean) => {
    for (const { apiVersion, kind, metadata } of objects) {
      const handles = await handle({ apiVersion, kind, metadata } as KubeObject)
      await eventually(
        async () => test(await handles.getOrUndefined(metadata.name, { namespace: 'default' })),
        `${kind} ${metadata.name} to be ${what}`,
        60_000,
      )
    }
  }
  const isReady = (object: KubeObject<ManagedBody> | undefined) => isConditionTrue(object?.status?.conditions, 'Ready')
  await eachIs('ready', isReady)
  // What someone removes from a published Secret is published again.
  const secrets = client.resource(secretResource)
  const published = objects.flatMap(({ spec }) => spec?.writeConnectionSecretToRef?.name ?? [])
  for (const name of published) await secrets.patch(name, { data: null } as object, { type: 'merge', namespace: 'default' })
  for (const name of published) {
    const isPublished = async () => (await secrets.get(name, { namespace: 'default' })).data !== undefined
    await eventually(isPublished, `Secret ${name} to be published again`)
  }
  // A change of what is wanted, a pause, and its end.
  const change = async (patch: object) => {
    for (const object of objects) await (await handle(object)).patch(object.metadata.name, patch, { type: 'merge', namespace: 'default' })
  }
  await change({ spec: { forProvider: { interval: '1h' } } })
  // Not before it was acted on, which uses the right to change what the resource owns.
  await eachIs('observed', object => object?.status?.observedGeneration === object?.metadata.generation)
  await change({ metadata: { annotations: { 'crossplane.io/paused': 'true' } } })
  await eachIs('paused', object => findCondition(object?.status?.conditions, 'Synced')?.reason === 'ReconcilePaused')
  await change({ metadata: { annotations: { 'crossplane.io/paused': null } } })
  await eachIs('resumed', object => findCondition(object?.status?.conditions, 'Synced')?.reason === 'ReconcileSuccess')
  await first?.manager.stop({ graceMs: 2_000 })
  for (const object of [...objects].reverse()) await (await handle(object)).delete(object.metadata.name, { namespace: 'default' })
  await eachIs('gone', object => object === undefined)
}

/** Waits until the failure to connect was recorded twice, and makes the credentials right. */
async function recover(client: Client, secretName: string, credentials: Record<string, string>): Promise<void> {
  await eventually(async () => {
    const events = await client.request({ method: 'GET', path: '/api/v1/namespaces/default/events' })
    const { items } = (await events.json()) as { items: { count?: number }[] }
    return items.some(({ count = 1 }) => count > 1)
  }, 'an Event that was recorded twice')
  await client.resource(secretResource).patch(secretName, { stringData: credentials }, { type: 'merge', namespace: 'default' })
}

async function clientOfAccount(api: TestServer, name: string): Promise<Client> {
  const response = await api.client.request({
    method: 'POST',
    path: `/api/v1/namespaces/${name}/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  })
  const { status } = (await response.json()) as { status: { token: string } }
  return await createClient({ cluster: { server: api.client.server, token: status.token, insecureSkipTlsVerify: true } })
}

function rightsOf({ apiGroups, resources, verbs }: Rule): string[] {
  return apiGroups.flatMap(group =>
    resources.flatMap(resource => verbs.map(verb => `${verb} ${resource} of group ${JSON.stringify(group)}`)),
  )
}
