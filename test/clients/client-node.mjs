// Typical steps of a user of @kubernetes/client-node, against the API server of the kubeconfig in argv[2]; argv[3] is the path of the
// library. Prints one line per step and exits with 1 at the first failure.
import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

const [, , kubeconfig, library] = process.argv
const k8s = await import(library)
const config = new k8s.KubeConfig()
config.loadFromFile(kubeconfig)
const core = config.makeApiClient(k8s.CoreV1Api)
const apps = config.makeApiClient(k8s.AppsV1Api)
const crds = config.makeApiClient(k8s.ApiextensionsV1Api)
const custom = config.makeApiClient(k8s.CustomObjectsApi)
const namespace = 'client-node'

async function until(what, check) {
  for (let i = 0; i < 200; i++) {
    if (await check()) return
    await sleep(50)
  }
  throw new Error(`not within ten seconds: ${what}`)
}

await core.createNamespace({ body: { metadata: { name: namespace } } })
console.log('namespace')

const seen = []
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, () => core.listNamespacedSecret({ namespace }))
for (const type of ['add', 'update', 'delete']) informer.on(type, secret => seen.push(`${type} ${secret.metadata.name}`))
// The informer reports its own stop as an error.
const unlessAborted = fail => error => error && error.name !== 'AbortError' && fail(error)
informer.on(
  'error',
  unlessAborted(error => {
    throw error
  }),
)
const secret = name => ({ metadata: { name }, stringData: { key: 'value' } })
await core.createNamespacedSecret({ namespace, body: secret('first') })
await informer.start()
await until('the first secret', () => seen.includes('add first'))
await core.createNamespacedSecret({ namespace, body: secret('second') })
await rejects(
  core.createNamespacedSecret({ namespace, body: secret('second') }),
  error => error.code === 409 && /AlreadyExists/.test(error.body),
)
const second = await core.readNamespacedSecret({ name: 'second', namespace })
equal(Buffer.from(second.data.key, 'base64').toString(), 'value')
second.metadata.labels = { changed: 'yes' }
await core.replaceNamespacedSecret({ name: 'second', namespace, body: second })
await rejects(core.replaceNamespacedSecret({ name: 'second', namespace, body: second }), error => error.code === 409)
await core.deleteNamespacedSecret({ name: 'first', namespace })
await until('every event', () => seen.includes('delete first'))
deepEqual(
  seen.filter(event => event.endsWith('first') || event.endsWith('second')),
  ['add first', 'add second', 'update second', 'delete first'],
)
await informer.stop()
console.log('informer')

const labels = { app: 'web' }
const web = {
  metadata: { name: 'web' },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'example.test/web:1' }] } },
  },
}
await apps.createNamespacedDeployment({ namespace, body: web })
const made = await apps.readNamespacedDeployment({ name: 'web', namespace })
deepEqual([made.spec.replicas, made.spec.strategy.type, made.spec.template.spec.restartPolicy], [1, 'RollingUpdate', 'Always'])
const objects = k8s.KubernetesObjectApi.makeApiClient(config)
await objects.patch(
  { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace }, spec: { replicas: 4 } },
  undefined,
  undefined,
  'client-node-test',
  true,
  k8s.PatchStrategy.ServerSideApply,
)
equal((await apps.readNamespacedDeploymentScale({ name: 'web', namespace })).spec.replicas, 4)
console.log('deployment')

await crds.createCustomResourceDefinition({
  body: {
    metadata: { name: 'canoes.node.test' },
    spec: {
      group: 'node.test',
      scope: 'Namespaced',
      names: { plural: 'canoes', kind: 'Canoe' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { seats: { type: 'integer', _default: 2 } } } },
            },
          },
        },
      ],
    },
  },
})
const canoes = { group: 'node.test', version: 'v1', namespace, plural: 'canoes' }
await until('the definition', () =>
  custom.listNamespacedCustomObject(canoes).then(
    () => true,
    () => false,
  ),
)
const canoe = { apiVersion: 'node.test/v1', kind: 'Canoe', metadata: { name: 'one' }, spec: {} }
const stored = await custom.createNamespacedCustomObject({ ...canoes, body: canoe })
equal(stored.spec.seats, 2)
await rejects(
  custom.createNamespacedCustomObject({ ...canoes, body: { ...canoe, metadata: { name: 'two' }, spec: { seats: 'many' } } }),
  error => error.code === 422 && /spec\.seats/.test(error.body),
)
const watched = new Promise((resolve, reject) => {
  new k8s.Watch(config)
    .watch(
      `/apis/node.test/v1/namespaces/${namespace}/canoes`,
      { resourceVersion: stored.metadata.resourceVersion },
      type => resolve(type),
      unlessAborted(reject),
    )
    .then(controller => watched.then(() => controller.abort()), reject)
})
await custom.deleteNamespacedCustomObject({ ...canoes, name: 'one' })
equal(await watched, 'DELETED')
console.log('custom resources')

const review = await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({
  body: { spec: { resourceAttributes: { verb: 'list', resource: 'pods', namespace } } },
})
equal(review.status.allowed, true)
match((await config.makeApiClient(k8s.VersionApi).getCode()).gitVersion, /^v/)
console.log('access reviews')
process.exit(0)
