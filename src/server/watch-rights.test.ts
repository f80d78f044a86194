import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from './test-server.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const accounts = '/api/v1/namespaces/default/serviceaccounts'
const watched = '/api/v1/namespaces/default/secrets?watch=1'

// Some seconds of waiting, so in a file of its own.
test('a watch ends soon after its right was taken away or its account was deleted; others go on', async () => {
  const t = await startTestServer()
  try {
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['watch'] }]
    const apiVersion = 'rbac.authorization.k8s.io/v1'
    await t.call(`${rbac}/clusterroles`, { body: { apiVersion, kind: 'ClusterRole', metadata: { name: 'watcher' }, rules } })
    const tokens: string[] = []
    for (const name of ['stripped', 'deleted', 'stays']) {
      const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name }]
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'watcher' }
      await t.call(accounts, { body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } } })
      await t.call(`${rbac}/clusterrolebindings`, {
        body: { apiVersion, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects },
      })
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
      const { body: made } = await t.call<{ status: { token: string } }>(`${accounts}/${name}/token`, { body })
      tokens.push(made.status.token)
    }
    const [stripped, deleted, stays] = await Promise.all(tokens.map(token => t.watch(watched, token)))
    await t.call(`${rbac}/clusterrolebindings/stripped`, { method: 'DELETE' })
    await t.call(`${accounts}/deleted`, { method: 'DELETE' })
    equal(await stripped!.next(), undefined)
    equal(await deleted!.next(), undefined)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'later' } }
    await t.call('/api/v1/namespaces/default/secrets', { body: secret })
    equal((await stays!.next())?.type, 'ADDED')
    stays!.stop()
  } finally {
    await t.close()
  }
})
