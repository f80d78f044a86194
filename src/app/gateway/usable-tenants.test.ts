import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { describeResource } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { usableTenants } from './usable-tenants.ts'

const tenants = Array.from({ length: 100 }, (_, index) => `tenant-${index}`)
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', scope: 'Cluster' } as const
const roles = describeResource<{ rules: object[] }>({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' })
const bindings = describeResource<{ roleRef: object; subjects: object[] }>({
  ...rbac,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
})

test('a user gets the Tenants that it may use, and one who may create no namespaces costs one review, however many there are', async () => {
  await using api = await startTestServer()
  const { client } = api
  let reviews = 0
  client.observeRequests(() => reviews++)
  const use = { apiGroups: ['oarlock.dev'], resources: ['tenants'], verbs: ['use'], resourceNames: ['tenant-3', 'tenant-97'] }
  const create = { apiGroups: [''], resources: ['namespaces'], verbs: ['create'] }
  for (const [name, rules] of Object.entries({ creator: [use, create], user: [use] })) {
    await client.resource(roles).create({ metadata: { name }, rules })
    const roleRef = { apiGroup: rbac.group, kind: 'ClusterRole', name }
    await client.resource(bindings).create({ metadata: { name }, roleRef, subjects: [{ apiGroup: rbac.group, kind: 'User', name }] })
  }
  const access = new AccessReviewer(client)
  const of = async (name: string, some = tenants) => {
    const before = reviews
    return { usable: await usableTenants({ name, groups: [] }, some, access), reviews: reviews - before }
  }
  const creator = await of('creator')
  deepEqual(creator.usable, ['tenant-3', 'tenant-97'])
  ok(creator.reviews >= tenants.length)
  deepEqual(await of('user'), { usable: [], reviews: 1 })
  deepEqual((await of('user', ['tenant-3'])).usable, ['tenant-3'])
  equal((await of('creator', ['tenant-4'])).usable.length, 0)
})
