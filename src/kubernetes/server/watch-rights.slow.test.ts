import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from './server.testing.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const accounts = '/api/v1/namespaces/default/serviceaccounts'
const watched = '/api/v1/namespaces/default/secrets?watch=1'

// In a separate file, because the permissions of an open watch are checked only every 15 s.
test('a watch ends after its permission is revoked or its ServiceAccount is deleted, and other watches continue', async () => {
  const t = await startTestServer()
  try {
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['watch'] }]
    const apiVersion = 'rbac.authorization.k8s.io/v1'
    await t.call(`${rbac}/clusterroles`, { body: { apiVersion, kind: 'ClusterRole', metadata: { name: 'watcher' }, rules } })
    const tokens: string[] = []
    for (const name of ['revoked', 'deleted', 'kept']) {
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
    const [revoked, deleted, kept] = await Promise.all(tokens.map(token => t.watch(watched, token)))
    await t.call(`${rbac}/clusterrolebindings/revoked`, { method: 'DELETE' })
    await t.call(`${accounts}/deleted`, { method: 'DELETE' })
    equal(await revoked!.next(), undefined)
    equal(await deleted!.next(), undefined)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'later' } }
    await t.call('/api/v1/namespaces/default/secrets', { body: secret })
    equal((await kept!.next())?.type, 'ADDED')
    kept!.stop()
  } finally {
    await t.close()
  }
})

test('a watch ends within 5 s when the Secret or the ServiceAccount of its token is deleted, and other watches continue', async () => {
  const t = await startTestServer()
  try {
    const secrets = '/api/v1/namespaces/default/secrets'
    await t.call(secrets, { body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'credential' } } })
    const { body: secret } = await t.call<{ metadata: { name: string; uid: string } }>(`${secrets}/credential`)
    await t.call(accounts, { body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'deleted' } } })
    const claim = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const { body: made } = await t.call<{ status: { token: string } }>(`${accounts}/deleted/token`, { body: claim })
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['watch'] }]
    const apiVersion = 'rbac.authorization.k8s.io/v1'
    await t.call(`${rbac}/clusterroles`, { body: { apiVersion, kind: 'ClusterRole', metadata: { name: 'watcher' }, rules } })
    const subjects = [{ kind: 'ServiceAccount', namespace: 'default', name: 'deleted' }]
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'watcher' }
    await t.call(`${rbac}/clusterrolebindings`, {
      body: { apiVersion, kind: 'ClusterRoleBinding', metadata: { name: 'w' }, roleRef, subjects },
    })
    const boundTo = { namespace: 'default', name: secret.metadata.name, uid: secret.metadata.uid }
    const user = { name: 'w1', groups: ['system:masters'], ttlMs: 3_600_000 }
    const tokens = [t.server.issueToken({ ...user, boundTo }), made.status.token, t.server.issueToken(user)]
    const configMaps = '/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0'
    const [bound, account, free] = await Promise.all(tokens.map((token, index) => t.watch(index === 1 ? watched : configMaps, token)))
    const deletedAtMs = performance.now()
    await t.call(`${secrets}/credential`, { method: 'DELETE' })
    await t.call(`${accounts}/deleted`, { method: 'DELETE' })
    for (const each of [bound!, account!]) while ((await each.next()) !== undefined);
    // Typically 0.5 s. The periodic check of permissions comes after 7.5 s at the earliest, so it cannot be what ended these watches.
    const tookMs = performance.now() - deletedAtMs
    ok(tookMs < 5_000, `took ${tookMs} ms`)
    await t.call('/api/v1/namespaces/default/configmaps', { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'later' } } })
    let last: string | undefined
    while (last !== 'later') last = ((await free!.next()) as { object: { metadata: { name: string } } }).object.metadata.name
    free!.stop()
  } finally {
    await t.close()
  }
})
