/** Commands of a user who has permissions in one namespace only, and not all of them. */
import { equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { stackResource } from '../src/api/index.ts'
import { installOarlock } from '../src/app/controllers/install.ts'
import { namespaceResource, serviceAccountResource } from '../src/kubernetes/client/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { accountKubeconfig } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'

test('commands of a user of one namespace report what does not exist, what is hidden, and which role grants it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-user-'))
  await using api = await startTestServer()
  const { client } = api
  try {
    await installOarlock(client)
    await client.resource(namespaceResource).create({ metadata: { name: 'shop' } })
    await client.resource(serviceAccountResource).create({ metadata: { name: 'ann', namespace: 'oarlock-system' } })
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop'
    const metadata = { name: 'ann' }
    const rules = [{ apiGroups: ['oarlock.dev'], resources: ['stacks'], verbs: ['get', 'list'] }]
    await client.request({ method: 'POST', path: `${rbac}/roles`, body: { metadata, rules } })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'ann' }
    const subjects = [{ kind: 'ServiceAccount', name: 'ann', namespace: 'oarlock-system' }]
    await client.request({ method: 'POST', path: `${rbac}/rolebindings`, body: { metadata, roleRef, subjects } })
    await client.resource(stackResource).create({
      metadata: { name: 'network', namespace: 'shop' },
      spec: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
    })
    const kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(kubeconfig, await accountKubeconfig(client, 'ann', api.server.caCertificate))
    const oarlock = (...args: string[]) => runOarlock([...args, '-n', 'shop', '--kubeconfig', kubeconfig])

    const missing = await oarlock('describe', 'stack', 'netwerk')
    equal(missing.code, 3, missing.text)
    match(missing.stderr, /stack "netwerk" not found in namespace shop\n.*did you mean network\?/)

    const described = await oarlock('describe', 'stack', 'network')
    equal(described.code, 0, described.text)
    match(
      described.stdout,
      /^Name: +network$[\s\S]*^Spec:$[\s\S]*^Runs: no permission to list runs$\n^Events: no permission to list events$/m,
    )

    const forbidden = await oarlock('get', 'runs')
    equal(forbidden.code, 4, forbidden.text)
    match(forbidden.stderr, /hint: the ClusterRole oarlock:view grants it in namespace shop: kubectl create rolebinding NAME/)

    const backup = await runOarlock(['backup', '--to', join(directory, 'backup'), '--kubeconfig', kubeconfig])
    equal(backup.code, 4, backup.text)
    match(
      backup.stderr,
      /cannot get path "\/backup"\n +hint: the ClusterRole cluster-admin grants it, or one with the verb get and nonResourceURLs/,
    )
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
