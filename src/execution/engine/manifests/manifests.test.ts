import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Client, configMapResource, createClient, namespaceResource } from '../../../kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../../kubernetes/server/index.ts'
import type { EngineContext } from '../engine.ts'
import type { EngineError } from '../engine-error.ts'
import { createEngineHarness, type EngineHarness } from '../engine-harness.testing.ts'
import { createManifestsEngine } from './manifests.ts'

let dataDir: string
let server: ApiServer
let client: Client
const engine = createManifestsEngine()
let namespaces = 0

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'oarlock-manifests-'))
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
})
after(async () => {
  await client.close()
  await server.close()
  await rm(dataDir, { recursive: true, force: true })
})

/** A harness whose Stack has its own namespace. */
async function harnessFor(
  t: Parameters<typeof createEngineHarness>[0],
  files: Record<string, string>,
  manifests: EngineContext['spec']['manifests'] = {},
) {
  const namespace = `ns-${++namespaces}`
  await client.resource(namespaceResource).create({ metadata: { name: namespace } })
  const harness = await createEngineHarness(t, files, {
    client,
    spec: { engine: 'manifests', manifests: { waitTimeout: '5s', ...manifests } },
    stack: { namespace, name: 'app', uid: `uid-${namespaces}` },
  })
  return { harness, namespace, configMaps: client.resource(configMapResource) }
}

async function run(harness: EngineHarness, options: { destroy?: boolean } = {}) {
  const context = await harness.nextRun()
  await engine.prepare(context)
  const plan = await engine.plan(context, options)
  return { plan, result: await engine.apply(context, plan) }
}

const configMap = (name: string, value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  key: ${value}\n`
const rejectsWith = (reason: string, message: RegExp, retryable?: boolean) => (error: EngineError) => {
  assert.equal(error.reason, reason, error.message)
  assert.match(error.message, message)
  if (retryable !== undefined) assert.equal(error.retryable, retryable)
  return true
}

test('applies, finds no changes, updates, prunes, destroys', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, { 'a.yaml': configMap('a', 'one'), 'sub/b.yml': configMap('b', 'one') })
  const first = await run(harness)
  assert.deepEqual([first.plan.add, first.plan.change, first.plan.destroy], [2, 0, 0])
  assert.deepEqual(first.plan.summary, [`+ ConfigMap ${namespace}/a`, `+ ConfigMap ${namespace}/b`])
  assert.deepEqual(first.result, { outputs: {}, resources: 2, changed: true })
  assert.deepEqual((await configMaps.get('b', { namespace })).data, { key: 'one' })

  const second = await run(harness)
  assert.deepEqual([second.plan.hasChanges, second.result.changed, second.result.resources], [false, false, 2])

  await harness.write({ 'a.yaml': configMap('a', 'two') })
  await harness.write({ 'sub/b.yml': '# empty\n' })
  const third = await run(harness)
  assert.deepEqual(third.plan.summary, [`~ ConfigMap ${namespace}/a (data.key)`, `- ConfigMap ${namespace}/b`])
  assert.equal(third.result.resources, 1)
  assert.deepEqual((await configMaps.get('a', { namespace })).data, { key: 'two' })
  assert.equal(await configMaps.getOrUndefined('b', { namespace }), undefined)

  const { plan, result } = await run(harness, { destroy: true })
  assert.deepEqual([plan.destroy, result.resources], [1, 0])
  assert.equal(await configMaps.getOrUndefined('a', { namespace }), undefined)
})

test('prune: false keeps objects that are no longer in the source', async t => {
  const { harness, namespace, configMaps } = await harnessFor(
    t,
    { 'a.yaml': configMap('a', 'one'), 'b.yaml': configMap('b', 'one') },
    { prune: false },
  )
  await run(harness)
  await harness.write({ 'b.yaml': '' })
  const { plan } = await run(harness)
  assert.equal(plan.destroy, 0)
  assert.ok(await configMaps.getOrUndefined('b', { namespace }))
})

test('drift is detected and corrected, also when another manager owns the field by then', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, { 'a.yaml': configMap('a', 'one') })
  await run(harness)
  await configMaps.patch('a', { data: { key: 'edited' } }, { type: 'merge', namespace, fieldManager: 'kubectl-edit' })
  const { plan } = await run(harness)
  assert.deepEqual(plan.summary, [`~ ConfigMap ${namespace}/a (data.key)`])
  assert.deepEqual((await configMaps.get('a', { namespace })).data, { key: 'one' })
})

test('an object of another manager is not taken over; the error names file, field, manager and remedy', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, {
    'a.yaml': `${configMap('first', 'x')}---\n${configMap('theirs', 'ours')}`,
  })
  await configMaps.apply({ metadata: { name: 'theirs', namespace }, data: { key: 'theirs' } }, { fieldManager: 'argocd' })
  await assert.rejects(
    run(harness),
    rejectsWith('PlanFailed', /^a.yaml document 2, ConfigMap theirs: \.?data\.key is managed by "argocd": .*--force-conflicts/, true),
  )
  assert.equal(await configMaps.getOrUndefined('first', { namespace }), undefined, 'a plan changes nothing')
})

test('rejects an object that belongs to another Stack', async t => {
  const { harness, namespace } = await harnessFor(t, { 'a.yaml': configMap('shared', 'one') })
  await run(harness)
  const other = await createEngineHarness(
    t,
    { 'a.yaml': configMap('shared', 'two') },
    {
      ...harness.context,
      stack: { namespace, name: 'other', uid: 'uid-other' },
      inventory: { read: async () => undefined, write: async () => undefined },
    },
  )
  await assert.rejects(engine.plan(other.context), rejectsWith('PlanFailed', /belongs to Stack ns-\d+\/app; remove it there first/))
})

test('one Run applies a CRD, a Namespace and objects that need them, and a destroy deletes them in reverse order', async t => {
  const suffix = `${process.pid}-${++namespaces}`
  const files = {
    'all.yaml': `apiVersion: example.test/v1
kind: Widget
metadata: { name: sample, namespace: created-${suffix} }
spec: { size: 2 }
---
apiVersion: v1
kind: Namespace
metadata: { name: created-${suffix} }
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.test }
spec:
  group: example.test
  scope: Namespaced
  names: { kind: Widget, plural: widgets, singular: widget, listKind: WidgetList }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { size: { type: integer } } }
`,
  }
  const { harness } = await harnessFor(t, files)
  const { plan, result } = await run(harness)
  assert.deepEqual([plan.add, result.resources], [3, 3])
  const widgets = client.resource(await client.discover('example.test/v1', 'Widget'))
  assert.deepEqual((await widgets.get('sample', { namespace: `created-${suffix}` })).spec, { size: 2 })
  await run(harness, { destroy: true })
  await assert.rejects(widgets.get('sample', { namespace: `created-${suffix}` }))
})

test('an object without a controller fails with WaitTimeout, and the message names that cause', async t => {
  const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web }] }
`
  const { harness } = await harnessFor(t, { 'web.yaml': deployment }, { waitTimeout: '300ms' })
  const isKnown = await client.discover('apps/v1', 'Deployment').then(
    () => true,
    () => false,
  )
  const want = isKnown
    ? rejectsWith('WaitTimeout', /^not Current after 300ms: Deployment ns-\d+\/web \(no controller has reconciled it yet/, true)
    : rejectsWith('PlanFailed', /^web.yaml, Deployment web: the cluster has no kind Deployment in apiVersion apps\/v1/, true)
  await assert.rejects(run(harness), want)
})

test('an object is pruned later although the Run that created it was killed before it wrote the inventory', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, { 'a.yaml': configMap('a', 'one') })
  const context = await harness.nextRun()
  const plan = await engine.plan(context)
  let writes = 0
  const killed: EngineContext = {
    ...context,
    inventory: {
      ...context.inventory,
      write: async value => {
        if (++writes > 1) throw new Error('killed')
        await context.inventory.write(value)
      },
    },
  }
  await assert.rejects(engine.apply(killed, plan), /killed/)
  assert.ok(await configMaps.getOrUndefined('a', { namespace }), 'the object was created')
  await harness.write({ 'a.yaml': '', 'b.yaml': configMap('b', 'one') })
  await run(harness)
  assert.equal(await configMaps.getOrUndefined('a', { namespace }), undefined, 'a later Run prunes it')
})

test('kubeconfig selects another cluster', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, { 'a.yaml': configMap('remote', 'one') })
  const context = await harness.nextRun({
    client: undefined as unknown as Client,
    kubeconfig: await readFile(server.kubeconfigPath, 'utf8'),
  })
  await engine.apply(context, await engine.plan(context))
  assert.ok(await configMaps.getOrUndefined('remote', { namespace }))
})

for (const { name, user = {}, cluster = {}, want } of [
  {
    name: 'runs a program',
    user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: ['-c', 'touch ran; echo {}'] } },
    want: /may not run programs: replace exec/,
  },
  { name: 'reads a token', user: { tokenFile: '/dev/null' }, want: /may not read files: replace tokenFile by token/ },
  { name: 'reads a certificate', user: { 'client-certificate': 'a.pem', 'client-key': 'a.pem' }, want: /client-certificate-data/ },
  { name: 'reads a key', user: { 'client-key': 'a.pem' }, want: /client-key-data/ },
  { name: 'reads an authority', user: { token: 't' }, cluster: { 'certificate-authority': 'a.pem' }, want: /certificate-authority-data/ },
]) {
  test(`rejects a kubeconfig that ${name} as the worker`, async t => {
    const { harness } = await harnessFor(t, { 'a.yaml': configMap('remote', 'one') })
    const kubeconfig = JSON.stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: server.url, 'insecure-skip-tls-verify': true, ...cluster } }],
      users: [{ name: 'u', user }],
    })
    const context = await harness.nextRun({ kubeconfig })
    await assert.rejects(engine.plan(context), rejectsWith('InvalidSpec', want, false))
    assert.ok(!existsSync('ran'))
  })
}

test('a plan for approval keeps its digest until the cluster changes', async t => {
  const { harness, namespace, configMaps } = await harnessFor(t, { 'a.yaml': configMap('a', 'one') })
  await run(harness)
  await harness.write({ 'a.yaml': configMap('a', 'two') })
  const context = await harness.nextRun()
  const plan = await engine.plan(context)
  assert.equal((await engine.readPlan(context, plan.file ?? '')).digest, plan.digest)
  await configMaps.patch('a', { data: { key: 'three' } }, { type: 'merge', namespace })
  assert.notEqual((await engine.readPlan(context, plan.file ?? '')).digest, plan.digest)
})

const bad: { name: string; files: Record<string, string>; variables?: Record<string, string>; want: [string, RegExp, boolean] }[] = [
  {
    name: 'variables',
    files: { 'a.yaml': configMap('a', 'b') },
    variables: { x: '1' },
    want: ['InvalidSpec', /no templates; got x/, false],
  },
  { name: 'an empty source', files: { 'readme.md': '' }, want: ['InvalidConfiguration', /has no \*\.yaml/, false] },
  {
    name: 'an unknown kind',
    files: { 'a.yaml': 'apiVersion: acme.test/v1\nkind: Rocket\nmetadata: { name: r }\n' },
    want: [
      'PlanFailed',
      /^a.yaml, Rocket r: the cluster has no kind Rocket in apiVersion acme.test\/v1; apply its CustomResourceDefinition/,
      true,
    ],
  },
  {
    name: 'a name that the server rejects',
    files: { 'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: Big_Name }\n' },
    want: ['InvalidConfiguration', /^a.yaml, ConfigMap Big_Name: .*metadata.name/, false],
  },
]
for (const { name, files, variables = {}, want } of bad) {
  test(`${name} is an error that names the location`, async t => {
    const { harness } = await harnessFor(t, files)
    const context = await harness.nextRun({ variables })
    const planned = async () => {
      await engine.prepare(context)
      await engine.plan(context)
    }
    await assert.rejects(planned(), rejectsWith(...want))
  })
}
