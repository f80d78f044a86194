/** What the stores hand out to the worker of a Run, and what they store for it, on any API server. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { type Run, runResource, type StackSpec, stackResource } from '../../src/api/index.ts'
import { configMapResource, secretResource } from '../../src/kubernetes/client/index.ts'
import { rfc3339 } from '../../src/kubernetes/object/index.ts'
import { type RunInputObjects, StateClient, type StateClientError } from '../../src/stores/state/index.ts'
import { type Fixture, namespace, runSpec, stackSpec } from './fixture.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

/** A client of the stores for a Run of worker w1. */
function clientOf({ storesUrl, tokens }: Fixture, { metadata, spec }: Run, epoch = spec.epoch): StateClient {
  const stack = spec.stackRef.name
  const token = tokens.w1 ?? ''
  return new StateClient({
    baseUrl: storesUrl,
    token,
    namespace: metadata.namespace ?? '',
    stack,
    runName: metadata.name,
    epoch,
    deadlineMs: 0,
  })
}

async function assign({ client }: Fixture, stack: string, more: Partial<StackSpec>, in_ = namespace): Promise<Run> {
  const { metadata } = await client.resource(stackResource).create({ metadata: { name: stack, namespace: in_ }, spec: stackSpec })
  const spec = { ...runSpec(stack, metadata.uid, { workerName: 'w1' }), stack: { ...stackSpec, ...more } }
  const { name } = (await client.resource(runResource).create({ metadata: { name: `${stack}-1`, namespace: in_ }, spec })).metadata
  return await client.resource(runResource).patchStatus(name, { status: { phase: 'Preparing' } }, { namespace: in_ })
}

const failure = async (work: Promise<unknown>): Promise<[status: number, code: string, message: string]> =>
  await work.then(
    () => [200, '', ''],
    ({ status, code, message }: StateClientError) => [status, code, message],
  )

/** A Run gets exactly the keys that it references, of a Secret, a ConfigMap, git credentials, a kubeconfig and the outputs of another Stack. */
export async function checkReferencedInputs(fixture: Fixture): Promise<void> {
  const { client } = fixture
  const secrets = client.resource(secretResource)
  const create = async (name: string, stringData: Record<string, string>) =>
    await secrets.create({ metadata: { name, namespace }, stringData })
  await create('api', { token: 't', unrelated: 'no' })
  await create('db', { dsn: 'd', unrelated: 'no' })
  await create('git', { username: 'u', password: 'p', unrelated: 'no' })
  await create('cluster', { kubeconfig: 'k', unrelated: 'no' })
  await client.resource(configMapResource).create({ metadata: { name: 'settings', namespace }, data: { region: 'eu', other: 'x' } })

  const network = clientOf(fixture, await assign(fixture, 'network', {}))
  await network.putOutputs({ data: { url: base64('"http://n"'), key: base64('"k"') }, sensitive: ['key'] })
  const run = await assign(fixture, 'shop', {
    engine: 'pulumi',
    source: { git: { url: 'https://git.test/x', secretRef: { name: 'git' } } },
    env: [{ name: 'TOKEN', secretKeyRef: { name: 'api', key: 'token' } }],
    variablesFrom: [
      { secretRef: { name: 'db', keys: { dsn: 'dsn', missing: 'x' } } },
      { configMapRef: { name: 'settings', keys: { region: 'region' } } },
      { stackRef: { name: 'network', outputs: { url: 'url' } } },
      { secretRef: { name: 'no-such-secret' } },
    ],
    manifests: { kubeconfigSecretRef: { name: 'cluster' } },
  })
  const own = clientOf(fixture, run)
  const inputs: RunInputObjects = await own.getInputs()
  const byName = <T extends { name: string }>(objects: readonly T[]) => objects.toSorted((a, b) => a.name.localeCompare(b.name))
  deepEqual(byName(inputs.secrets), [
    { name: 'api', keys: ['token', 'unrelated'], data: { token: base64('t') } },
    { name: 'cluster', keys: ['kubeconfig', 'unrelated'], data: { kubeconfig: base64('k') } },
    { name: 'db', keys: ['dsn', 'unrelated'], data: { dsn: base64('d') } },
    { name: 'git', keys: ['password', 'unrelated', 'username'], data: { username: base64('u'), password: base64('p') } },
  ])
  deepEqual(inputs.configMaps, [{ name: 'settings', keys: ['other', 'region'], data: { region: 'eu' } }])
  deepEqual(inputs.outputs, [{ stack: 'network', keys: ['key', 'url'], data: { url: base64('"http://n"') }, sensitive: [] }])

  // A program of engine pulumi reads all outputs of the Stacks that its spec names, and of no other.
  deepEqual(await own.getOutputs('network'), { data: { url: base64('"http://n"'), key: base64('"k"') }, sensitive: ['key'] })
  deepEqual((await failure(own.getOutputs('web'))).slice(0, 2), [403, 'NotReferenced'])
  deepEqual((await failure(network.getOutputs('web'))).slice(0, 2), [403, 'NotReferenced'])

  await own.putOutputs({ data: { a: base64('1') }, sensitive: [], pulumiStack: 'p/dev' })
  const stored = await secrets.get('shop-outputs', { namespace })
  deepEqual(
    [stored.type, stored.data, stored.metadata.ownerReferences?.[0]?.uid],
    ['oarlock.dev/outputs', { a: base64('1') }, run.spec.stackRef.uid],
  )
  await own.putOutputs({ data: { a: base64('1') }, sensitive: [], pulumiStack: 'p/dev' })
  equal((await secrets.get('shop-outputs', { namespace })).metadata.resourceVersion, stored.metadata.resourceVersion)
  await own.deleteOutputs()
  await own.deleteOutputs()
  equal(await secrets.getOrUndefined('shop-outputs', { namespace }), undefined)

  // From its end on, nothing.
  await client
    .resource(runResource)
    .patchStatus(run.metadata.name, { status: { phase: 'Failed', finishedAt: rfc3339(Date.now()) } }, { namespace })
  for (const failed of await Promise.all(
    [own.getInputs(), own.getOutputs('network'), own.putOutputs({ data: {}, sensitive: [] }), own.deleteOutputs()].map(failure),
  ))
    deepEqual(failed.slice(0, 2), [403, 'RunEnded'])
  await Promise.all([network.close(), own.close()])
}

/** Invariant 3: a Run with an older epoch than that of the lock gets no inputs, and stores no outputs. */
export async function checkFencedInputs(fixture: Fixture): Promise<void> {
  const run = await fixture.client.resource(runResource).get('fenced-1', { namespace })
  const fenced = clientOf(fixture, run)
  for (const failed of await Promise.all(
    [fenced.getInputs(), fenced.getOutputs('web'), fenced.putOutputs({ data: {}, sensitive: [] }), fenced.deleteOutputs()].map(failure),
  ))
    deepEqual(failed.slice(0, 2), [409, 'StaleEpoch'])
  await fenced.close()
}

/** A Secret of a user is never replaced, and a Run whose outputs could not be stored does not start. */
export async function checkTakenOutputs(fixture: Fixture): Promise<void> {
  const { client } = fixture
  const run = await assign(fixture, 'taken', {})
  const metadata = { name: 'taken-outputs', namespace }
  await client.resource(secretResource).create({ metadata, stringData: { a: 'of a user' } })
  const own = clientOf(fixture, run)
  for (const [status, code, message] of await Promise.all([own.getInputs(), own.putOutputs({ data: {}, sensitive: [] })].map(failure))) {
    deepEqual([status, code], [409, 'OutputsSecretTaken'])
    match(message, /^Secret shop\/taken-outputs already exists and does not hold the outputs of this Stack; delete or rename it$/)
  }
  await own.deleteOutputs()
  equal((await client.resource(secretResource).get(metadata.name, { namespace })).data?.a, base64('of a user'))
  await own.close()
}

/** Secrets of the namespaces in which Oarlock keeps its own are not handed out, whatever the stores may read. */
export async function checkReservedNamespaces(fixture: Fixture): Promise<void> {
  for (const in_ of ['oarlock-system', 'oarlock-workers']) {
    const own = clientOf(fixture, await assign(fixture, 'inside', {}, in_))
    const [status, code, message] = await failure(own.getInputs())
    deepEqual([status, code], [403, 'InputsNotAllowed'])
    match(message, /^Secrets of namespace oarlock-\w+ are not handed out; move the Stack to a namespace of its own$/)
    await own.close()
  }
}

/** Where an administrator has not bound `oarlock:run-inputs`, the message has the command that does. */
export async function checkUnboundNamespace(fixture: Fixture): Promise<void> {
  const own = clientOf(fixture, await assign(fixture, 'unbound', {}, 'elsewhere'))
  const [status, code, message] = await failure(own.getInputs())
  deepEqual([status, code], [403, 'InputsNotAllowed'])
  match(
    message,
    /^the stores may not use Secrets and ConfigMaps of namespace elsewhere; allow it with: kubectl create rolebinding oarlock-stores --clusterrole=oarlock:run-inputs --serviceaccount=oarlock-system:oarlock-stores -n elsewhere \(secrets "unbound-outputs" is forbidden: /,
  )
  await own.close()
}
