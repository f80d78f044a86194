import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, createClient } from '../../kubernetes/client/index.ts'
import { describeResource } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { LimitExceededError } from '../../kubernetes/util/index.ts'
import { AccessReviewer, forbiddenMessage } from './access-reviewer.ts'
import { authenticateByTokenReview } from './authenticate-by-token-review.ts'
import { rememberReviews } from './remembered-reviews.ts'

const accounts = describeResource<object>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
})
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Namespaced' } as const
const roles = describeResource<{ rules: object[] }>({ ...rbac, kind: 'Role', plural: 'roles' })
const bindings = describeResource<{ roleRef: object; subjects: object[] }>({ ...rbac, kind: 'RoleBinding', plural: 'rolebindings' })
const namespace = 'default'

async function tokenOf(client: Client, name: string): Promise<string> {
  await client.resource(accounts).apply({ metadata: { name, namespace } }, { force: true })
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const response = await client.request({ method: 'POST', path, body })
  return ((await response.json()) as { status: { token: string } }).status.token
}

function countRequests(client: Client): () => number {
  let requests = 0
  client.observeRequests(() => requests++)
  return () => requests
}

test('a token is reviewed once in ten seconds, and a deleted ServiceAccount is rejected after them', async () => {
  await using api = await startTestServer()
  const token = await tokenOf(api.client, 'deployer')
  let nowMs = 0
  const authenticate = authenticateByTokenReview(api.client, { nowMs: () => nowMs })
  const requests = countRequests(api.client)
  const [user, same] = await Promise.all([authenticate(token), authenticate(token)])
  equal(user?.name, 'system:serviceaccount:default:deployer')
  ok(user?.groups.includes('system:serviceaccounts:default'))
  notEqual(user?.uid, undefined)
  equal(same, user)
  equal(requests(), 1)
  await api.client.resource(accounts).delete('deployer', { namespace })
  nowMs = 9_999
  equal((await authenticate(token))?.name, user?.name)
  nowMs = 10_000
  equal(await authenticate(token), undefined)
  equal(requests(), 3)
})

test('an invalid token is reviewed at most once per second, and one that no server issues not at all', async () => {
  await using api = await startTestServer()
  let nowMs = 0
  const authenticate = authenticateByTokenReview(api.client, { nowMs: () => nowMs })
  const requests = countRequests(api.client)
  for (const token of ['', 'x'.repeat(20_000)]) equal(await authenticate(token), undefined)
  equal(requests(), 0)
  equal(await authenticate('no-such-token'), undefined)
  equal(await authenticate('no-such-token'), undefined)
  equal(requests(), 1)
  nowMs = 1_000
  equal(await authenticate('no-such-token'), undefined)
  equal(requests(), 2)
})

test('a client with invalid tokens does not keep a client at another address from being authenticated', async () => {
  await using api = await startTestServer()
  const [known, fresh] = [await tokenOf(api.client, 'known'), await tokenOf(api.client, 'fresh')]
  const authenticate = authenticateByTokenReview(api.client)
  const requests = countRequests(api.client)
  equal((await authenticate(known, '10.0.0.1'))?.name, 'system:serviceaccount:default:known')
  const invalid = Promise.allSettled(Array.from({ length: 400 }, (_, i) => authenticate(`token-${i}`, '10.0.0.9')))
  equal((await authenticate(fresh, '10.0.0.1'))?.name, 'system:serviceaccount:default:fresh')
  const results = await invalid
  const rejected = results.filter(result => result.status === 'rejected')
  equal(rejected.length, 400 - 16 - 256)
  ok(rejected.every(({ reason }) => reason instanceof LimitExceededError))
  ok(results.every(result => result.status === 'rejected' || result.value === undefined))
  equal(await authenticate('token-399', '10.0.0.9'), undefined)
  const before = requests()
  equal((await authenticate(known, '10.0.0.1'))?.name, 'system:serviceaccount:default:known')
  equal(requests(), before)
})

test('a client with invalid tokens neither keeps a token valid that has ended, nor delays one of its network that is valid', async () => {
  await using api = await startTestServer()
  const [valid, ended] = [await tokenOf(api.client, 'valid'), await tokenOf(api.client, 'ended')]
  const authenticate = rememberReviews(authenticateByTokenReview(api.client, { authenticatedMs: 0 }))
  for (const token of [valid, ended]) ok(await authenticate(token, '10.0.0.9'))
  await api.client.resource(accounts).delete('ended', { namespace: 'default' })
  const invalid = Promise.allSettled(Array.from({ length: 400 }, (_, i) => authenticate(`token-${i}`, '10.0.0.9')))
  const [one, other] = await Promise.all([authenticate(valid, '10.0.0.9'), authenticate(ended, '10.0.0.9')])
  deepEqual([one?.name, other], ['system:serviceaccount:default:valid', undefined])
  ok((await invalid).some(({ status }) => status === 'rejected'))
})

test('rejected tokens do not displace authenticated ones from the cache', async () => {
  let reviews = 0
  const client = {
    resource: () => ({
      create: async ({ spec: { token } }: { spec: { token: string } }) => {
        reviews++
        return { status: token === 'valid' ? { authenticated: true, user: { username: 'ada' } } : { authenticated: false } }
      },
    }),
  } as unknown as Client
  const authenticate = authenticateByTokenReview(client, { nowMs: () => 0 })
  await authenticate('valid')
  for (let i = 0; i < 11_000; i++) await authenticate(`invalid-${i}`)
  const before = reviews
  equal((await authenticate('valid'))?.name, 'ada')
  equal(reviews, before)
})

test('an unreachable API server is an error, not an unauthenticated user', async () => {
  const client = await createClient({ cluster: { server: 'https://127.0.0.1:1', token: 'x' } })
  await rejects(authenticateByTokenReview(client)('token'), { name: 'ConnectionError' })
  await rejects(new AccessReviewer(client).isAllowed({ name: 'ada', groups: [] }, { verb: 'get', resource: 'stacks' }), {
    name: 'ConnectionError',
  })
  await client.close()
})

test('a permission is decided by RBAC and is used for five seconds after it was revoked', async () => {
  await using api = await startTestServer()
  const { client } = api
  let nowMs = 0
  const reviewer = new AccessReviewer(client, { nowMs: () => nowMs })
  const requests = countRequests(client)
  const ada = { name: 'ada', groups: ['system:authenticated'] }
  const readState = { verb: 'get', resource: 'stacks', subresource: 'state', namespace, name: 'web' }
  equal(await reviewer.isAllowed(ada, readState), false)
  const rules = [{ apiGroups: ['oarlock.dev'], resources: ['stacks/state'], resourceNames: ['web'], verbs: ['get'] }]
  await client.resource(roles).create({ metadata: { name: 'state', namespace }, rules })
  const roleRef = { apiGroup: rbac.group, kind: 'Role', name: 'state' }
  const subjects = [{ apiGroup: rbac.group, kind: 'User', name: 'ada' }]
  await client.resource(bindings).create({ metadata: { name: 'state', namespace }, roleRef, subjects })
  nowMs = 1_000
  equal(await reviewer.isAllowed(ada, readState), true)
  equal(await reviewer.isAllowed(ada, { ...readState, name: 'other' }), false)
  equal(await reviewer.isAllowed(ada, { ...readState, verb: 'update' }), false)
  equal(await reviewer.isAllowed({ ...ada, name: 'bob' }, readState), false)
  await client.resource(bindings).delete('state', { namespace })
  const before = requests()
  nowMs = 5_999
  equal(await reviewer.isAllowed(ada, readState), true)
  equal(requests(), before)
  nowMs = 6_000
  equal(await reviewer.isAllowed(ada, readState), false)
  match(
    forbiddenMessage(ada, readState),
    /^stacks\.oarlock\.dev "web" is forbidden: User "ada" cannot get resource "stacks\/state" in API group "oarlock\.dev" in the namespace "default"$/,
  )
})
