/** One installation with users, workers, Stacks and Runs, on any API server, for the rows of `rows.ts`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  labels,
  outputsSecretType,
  type Run,
  runResource,
  type StackSpec,
  stackResource,
  systemNamespace,
  type WorkerPod,
  workerPoolResource,
  workerResource,
  workersNamespace,
} from '../../src/api/index.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { authenticateByTokenReview } from '../../src/app/delegated-auth/authenticate-by-token-review.ts'
import { publishEndpoint } from '../../src/app/discovery/index.ts'
import type { IssueCredential } from '../../src/app/join/index.ts'
import { withdrawRights } from '../../src/app/join/service-account-issuer.ts'
import { rightsOfWorker } from '../../src/app/manifests/index.ts'
import { account, boundRole, group, type Manifest, type Rule, roleBinding } from '../../src/app/manifests/rule.ts'
import { createStoreHandlers, openStores, type StoreHandlers } from '../../src/app/stores/stores.ts'
import { componentAccount } from '../../src/app/worker-identity.ts'
import {
  type Client,
  configMapResource,
  createClient,
  leaseResource,
  namespaceResource,
  type SecretBody,
  secretResource,
  serviceAccountResource,
} from '../../src/kubernetes/client/index.ts'
import { silentLog } from '../../src/kubernetes/controller/index.ts'
import { type KubeObject, type NewObject, rfc3339 } from '../../src/kubernetes/object/index.ts'
import { sendRequest, type Target } from '../conformance/target.ts'
import { type CreateRun, createPodWorkers } from './pod-workers.ts'

export type Fixture = {
  readonly client: Client
  readonly handlers: StoreHandlers
  /** Bearer tokens by user; `basic:` for the token of the Stack web. */
  readonly tokens: Record<string, string>
  /** Assigned and not ended. */
  readonly runs: readonly Run[]
  readonly createPodRun: CreateRun
  /** The Pods that the Workers record. */
  readonly podUids: Readonly<Record<string, string>>
  /** PEM of the authority of the API server's certificate. */
  readonly caCertificate: string | undefined
  /** Address of the stores on a listener of their own. */
  readonly storesUrl: string
  /** Sends a request to the API server, or to the stores on a listener of their own. Returns the code and the message of an error. */
  send(to: 'api' | 'stores', user: string, request: RightsRequest): Promise<{ code: number; message: string }>
  close(): Promise<void>
}

export type RightsRequest = { method: string; path: string; body?: unknown; contentType?: string; headers?: Record<string, string> }

/** Where the users of the rows have their permissions. */
export const namespace = 'shop'
const usersNamespace = 'users'
export const planDigest = 'sha256-0123'

/** Of the Stack `careful`. */
export const awaitingPlan = {
  digest: 'sha256:0123',
  runName: 'careful-1',
  generation: 1,
  revision: 'r',
  inputsDigest: 'i',
  add: 1,
  change: 0,
  destroy: 0,
}
/** When the Stack `restored` was restored. */
export const restoredAt = '2026-01-01T00:00:00Z'
export const stackSpec: StackSpec = {
  engine: 'command',
  source: { inline: { files: { a: '' } } },
  command: { apply: ['true'] },
  suspend: true,
}

const ownKinds = (resources: string[], verbs: string[], resourceNames?: string[]) => ({
  ...{ apiGroups: ['oarlock.dev'], resources, verbs },
  ...(resourceNames && { resourceNames }),
})

/** Users by name, with what they are bound to in the namespace: ClusterRoles, or rules of their own. */
const users: Readonly<Record<string, readonly string[] | Rule[]>> = {
  viewer: ['oarlock:view'],
  editor: ['oarlock:view', 'oarlock:edit'],
  owner: ['oarlock:view', 'oarlock:edit', 'oarlock:admin'],
  'log-of-web': [ownKinds(['stacks/log'], ['get'], ['web'])],
  'state-reader': [ownKinds(['stacks/state'], ['get'])],
  'state-writer': [ownKinds(['stacks/state'], ['get', 'update'])],
  'plan-reader': [ownKinds(['stacks/plan'], ['get'])],
  'plan-file-reader': [ownKinds(['stacks/plan', 'stacks/state'], ['get'])],
  'run-writer': [ownKinds(['runs'], ['*'])],
  binder: [ownKinds(['runs'], ['*']), ownKinds(['runs/binding'], ['update'])],
  approver: ['oarlock:approver'],
  destroyer: ['oarlock:destroyer'],
  canceler: ['oarlock:canceler'],
  outsider: [],
}

type WorkerState = { pool: string; labels: Record<string, string>; state: 'registered' | 'unknown' | 'requested' | 'ended' }

/** Workers by name, with the labels that they joined with; `unknown` ones have not registered. A controller requested w4. That of w6 was deleted. */
const workers: Readonly<Record<string, WorkerState>> = {
  w1: { pool: 'edge', labels: { gpu: 'a100' }, state: 'registered' },
  w2: { pool: 'edge', labels: {}, state: 'registered' },
  w3: { pool: 'edge', labels: { gpu: 'a100', zone: 'west' }, state: 'unknown' },
  w5: { pool: 'edge', labels: {}, state: 'unknown' },
  w4: { pool: 'edge', labels: { gpu: 'a100' }, state: 'requested' },
  w6: { pool: 'edge', labels: {}, state: 'ended' },
  w7: { pool: 'edge', labels: {}, state: 'unknown' },
  w8: { pool: 'edge', labels: {}, state: 'unknown' },
}

/**
 * @param target its `tokens.admin` is an administrator.
 * @param issueLocal issues the credentials of local workers, which only the embedded server has: they are the users `local-w1` and so on.
 */
export async function createFixture(target: Target, issueLocal?: IssueCredential): Promise<Fixture> {
  const client = await createClient({ cluster: { server: target.url, token: target.tokens.admin, insecureSkipTlsVerify: true } })
  await installOarlock(client)
  for (const name of [namespace, 'other', 'elsewhere', usersNamespace])
    await client.resource(namespaceResource).create({ metadata: { name } })
  const tokens: Record<string, string> = { admin: target.tokens.admin ?? '', wrong: 'no-such-token' }
  for (const [name, bound] of Object.entries(users)) {
    tokens[name] = await createAccount(client, usersNamespace, name)
    await bind(client, name, bound)
  }
  for (const name of ['controller', 'stores', 'join-service', 'pool', 'console-server'] as const)
    tokens[name] = await requestToken(client, systemNamespace, componentAccount(name))

  // With the permissions of the roles, which create the ConfigMaps.
  for (const [name, role] of [['stores', 'stores'] as const, ['join-service', 'join'] as const, ['controller', 'queue'] as const]) {
    const own = await createClient({ cluster: { server: target.url, token: tokens[name], insecureSkipTlsVerify: true } })
    await publishEndpoint(own, role, { url: `https://${role}`, caCertificate: undefined })
    await own.close()
  }
  // That of a process that serves states.
  await client.resource(leaseResource).create({ metadata: { name: 'oarlock-stores', namespace: systemNamespace }, spec: {} })
  for (const name of ['edge', 'private'])
    await client.resource(workerPoolResource).create({ metadata: { name }, spec: { mode: 'External' } })
  for (const [name, worker] of Object.entries(workers)) {
    const record = await createWorker(client, name, worker)
    tokens[name] = await createAccount(client, workersNamespace, name)
    const issued = await issueLocal?.({ worker: name, pool: worker.pool, hasJoined: false, ttlMs: 600_000, record })
    if (issued) tokens[`local-${name}`] = issued.credential
  }
  // In the namespace of the workers, which the join service does not create.
  tokens['named-like-component'] = await createAccount(client, workersNamespace, componentAccount('controller'))
  // As an administrator does for the namespaces with Stacks.
  await create(client, [
    roleBinding(namespace, 'oarlock-stores', 'oarlock:run-inputs', [account(systemNamespace, componentAccount('stores'))]),
  ])
  const workersGroup = group(`system:serviceaccounts:${workersNamespace}`)
  const ownRole: Rule = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['*'] }
  await create(client, [
    ...boundRole('elsewhere', 'write-roles', [ownRole], [workersGroup]),
    ...boundRole('elsewhere', 'oarlock-present', [], []),
  ])
  const runs = [await createRun(client, 'web', 'w1'), await createRun(client, 'db', 'w2')]
  await client.resource(configMapResource).create({ metadata: { name: 'web-config', namespace }, data: { region: 'eu' } })
  await client.resource(secretResource).create({ metadata: { name: 'of-elsewhere', namespace: 'elsewhere' }, stringData: { a: 'x' } })
  const ended = await createRun(client, 'done', 'w1')
  await client.resource(runResource).patchStatus(ended.metadata.name, { status: { phase: 'Succeeded' } }, { namespace })
  const fenced = await createRun(client, 'fenced', 'w1')
  // Its worker applies objects.
  await createRun(client, 'objects', 'w7', { engine: 'manifests' })
  for (const [name, labels] of [['of-objects', {}] as const, ['guarded', { 'oarlock.dev/approval': 'Required' }] as const]) {
    const annotations = { 'oarlock.dev/stack': `${namespace}/objects` }
    await client.resource(namespaceResource).create({ metadata: { name, labels, annotations } })
  }
  // It has no worker yet.
  const queued = runSpec('web', runs[0]!.spec.stackRef.uid, { epoch: 2 })
  await client.resource(runResource).create({ metadata: { name: 'web-2', namespace }, spec: queued })
  for (const [name, more] of [['careful', { approval: 'Manual' }] as const, ['kept', { deletion: 'Orphan' }] as const])
    await client.resource(stackResource).create({ metadata: { name, namespace }, spec: { ...stackSpec, ...more } })
  const protectedSpec: StackSpec = { ...stackSpec, deletion: 'Orphan', deletionProtection: true }
  await client.resource(stackResource).create({ metadata: { name: 'protected', namespace: 'elsewhere' }, spec: protectedSpec })
  await client.resource(stackResource).create({ metadata: { name: 'restored', namespace }, spec: stackSpec })
  await client.resource(stackResource).patchStatus('restored', { status: { restored: { at: restoredAt } } }, { namespace })
  await client.resource(stackResource).patchStatus('careful', { status: { plan: awaitingPlan } }, { namespace })
  // Runs in another namespace with the UID of the Stack web, and with that of a Stack that no longer exists.
  for (const [name, uid] of [['steal', runs[0]!.spec.stackRef.uid] as const, ['orphan', 'deleted'] as const]) {
    const spec = runSpec('web', uid, { workerName: 'w1' })
    await client.resource(runResource).create({ metadata: { name, namespace: 'elsewhere' }, spec })
  }

  const createPodRun: CreateRun = (stack, workerName, workerPod) => createRun(client, stack, workerName, {}, workerPod)
  const podWorkers = await createPodWorkers(client, createPodRun)
  Object.assign(tokens, podWorkers.tokens)

  const directory = mkdtempSync(join(tmpdir(), 'oarlock-rights-'))
  const stores = await openStores({ dataDir: directory, log: silentLog })
  const stackUid = runs[0]!.spec.stackRef.uid
  await stores.log.append({ namespace, run: 'web-1' }, 0, Buffer.from('hello\n'))
  await stores.log.append({ namespace, run: 'db-1' }, 0, Buffer.from('hello\n'))
  await stores.state.putPlan({ stackUid, digest: planDigest, runName: 'web-1', bytes: Buffer.from('plan') })
  await stores.state.putDiff({ stackUid, runName: 'web-1', bytes: Buffer.from('{}') })
  // A newer Run has the lock.
  const newer = { kind: 'Run' as const, runName: 'fenced-2', epoch: 2 }
  await stores.state.lock({ stackUid: fenced.spec.stackRef.uid, holder: newer }, async () => false)
  const stackToken = await stores.state.stackToken(stackUid)
  // With the permissions of the role, not those of an administrator.
  const storesClient = await createClient({ cluster: { server: target.url, token: tokens.stores, insecureSkipTlsVerify: true } })
  const handlers = createStoreHandlers(stores, { client: storesClient, log: silentLog })
  const authenticate = authenticateByTokenReview(storesClient)
  const listener = createServer(async (request, response) => {
    const [scheme, token = ''] = (request.headers.authorization ?? '').split(' ')
    const user = scheme === 'Bearer' ? await authenticate(token) : undefined
    await (request.url?.startsWith('/logs/') ? handlers.log : handlers.state)(request, response, { user })
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as AddressInfo

  return {
    ...{
      client,
      handlers,
      tokens,
      runs,
      createPodRun,
      caCertificate: target.caCertificate,
      podUids: podWorkers.podUids,
      storesUrl: `http://127.0.0.1:${port}`,
    },
    async send(to, user, { method, path, body, contentType = 'application/json', headers = {} }) {
      const all: Record<string, string> = { ...headers, ...(body !== undefined && { 'content-type': contentType }) }
      if (user === 'stack-token') all.authorization = `Basic ${Buffer.from(`any:${stackToken}`).toString('base64')}`
      else if (user !== 'anonymous') all.authorization = `Bearer ${tokens[user]}`
      const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
      if (to === 'api') {
        const response = await sendRequest(target, { method, path, headers: all, body: text })
        return { code: response.code, message: messageOf(response.text) }
      }
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: all, body: text })
      return { code: response.status, message: messageOf(await response.text()) }
    },
    async close() {
      listener.closeAllConnections()
      listener.close()
      await stores.close()
      await Promise.all([client.close(), storesClient.close()])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

function messageOf(text: string): string {
  try {
    const body = JSON.parse(text) as { message?: string; error?: { message?: string } }
    return body.error?.message ?? body.message ?? ''
  } catch {
    return text
  }
}

async function createAccount(client: Client, accountNamespace: string, name: string): Promise<string> {
  await client.resource(serviceAccountResource).create({ metadata: { name, namespace: accountNamespace } })
  return await requestToken(client, accountNamespace, name)
}

async function requestToken(client: Client, accountNamespace: string, name: string): Promise<string> {
  const path = `/api/v1/namespaces/${accountNamespace}/serviceaccounts/${name}/token`
  const response = await client.request({ method: 'POST', path, body: tokenRequest })
  return ((await response.json()) as { status: { token: string } }).status.token
}

export const tokenRequest = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }

async function bind(client: Client, user: string, bound: (typeof users)[string]): Promise<void> {
  const subjects = [account(usersNamespace, user)]
  const rules = bound.filter(each => typeof each !== 'string')
  if (rules.length > 0) await create(client, boundRole(namespace, user, rules, subjects))
  const roles = bound.filter(each => typeof each === 'string')
  await create(
    client,
    roles.map(role => roleBinding(namespace, `${user}-${role.replace(':', '-')}`, role, subjects)),
  )
}

async function create(client: Client, manifests: readonly Manifest[]): Promise<void> {
  for (const manifest of manifests) {
    const resource = await client.discover(manifest.apiVersion, manifest.kind)
    await client.resource(resource).create(manifest as NewObject<object>)
  }
}

/** What the join service creates, and what the worker registers with. */
async function createWorker(client: Client, name: string, { pool, labels: own, state }: WorkerState): Promise<KubeObject<SecretBody>> {
  const record = await client.resource(secretResource).create({
    metadata: {
      name: `worker-credential-${name}`,
      namespace: workersNamespace,
      labels: { 'oarlock.dev/join-token': 'x', [labels.pool]: pool },
      annotations: {
        'oarlock.dev/worker-labels': JSON.stringify(own),
        'oarlock.dev/expires-at': rfc3339(Date.now() + 3_600_000),
        ...(state === 'ended' && { 'oarlock.dev/ended-at': rfc3339(Date.now()) }),
      },
    },
    type: 'oarlock.dev/worker-credential',
    stringData: { worker: name },
  })
  const owner = { apiVersion: 'v1', kind: 'Secret', name: record.metadata.name, uid: record.metadata.uid }
  const allLabels = { ...own, [labels.pool]: pool }
  await create(client, rightsOfWorker({ name, owner, labels: allLabels, mayRegister: state === 'unknown' }))
  if (state === 'ended') await withdrawRights(client, name)
  if (state === 'requested') {
    const requested = { pool, slots: 1, lifecycle: 'Warm' as const, start: true }
    await client.resource(workerResource).create({ metadata: { name, labels: { [labels.pool]: pool } }, spec: requested })
  }
  if (state === 'registered') {
    const leaseSpec = { holderIdentity: name, leaseDurationSeconds: 10 }
    await client.resource(leaseResource).create({ metadata: { name, namespace: systemNamespace }, spec: leaseSpec })
    const registered = { pool, slots: 1, lifecycle: 'Warm' as const, drain: true }
    await client.resource(workerResource).create({ metadata: { name, labels: allLabels }, spec: registered })
    await client.resource(workerResource).patchStatus(name, { status: { phase: 'Ready' } })
  }
  return record
}

/** A Run that is assigned to the worker, with a Secret that it references and one that it does not. */
async function createRun(
  client: Client,
  stack: string,
  workerName: string,
  more: Partial<StackSpec> = {},
  workerPod?: WorkerPod,
): Promise<Run> {
  const { metadata } = await client.resource(stackResource).create({ metadata: { name: stack, namespace }, spec: stackSpec })
  const owner = { apiVersion: stackResource.apiVersion, kind: 'Stack', name: stack, uid: metadata.uid }
  const secrets = client.resource(secretResource)
  await secrets.create({ metadata: { name: `${stack}-input`, namespace }, stringData: { password: 'x' } })
  await secrets.create({ metadata: { name: `${stack}-outputs`, namespace, ownerReferences: [owner] }, type: outputsSecretType })
  const runs = client.resource(runResource)
  const { name } = (
    await runs.create({
      metadata: { name: `${stack}-1`, namespace, finalizers: ['oarlock.dev/assigned'] },
      spec: runSpec(stack, metadata.uid, { workerName, ...(workerPod && { workerPod }) }, more),
    })
  ).metadata
  return await runs.patchStatus(name, { status: { phase: 'Applying' } }, { namespace })
}

export const runSpec = (
  stack: string,
  uid: string,
  more: object,
  ofStack: Partial<StackSpec> = {},
): KubeObject<{ spec: Run['spec'] }>['spec'] => ({
  ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'edge', priority: 0 },
  stackRef: { name: stack, uid, generation: 1 },
  stack: { ...stackSpec, ...ofStack, variablesFrom: [{ secretRef: { name: `${stack}-input` } }] },
  ...more,
})
