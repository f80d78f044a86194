/** What the commands report to a user who lacks a permission: which one, and how to get it, before they ask or change anything. */
import { equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runResource, type StackSpec, stackResource, tenantResource } from '../src/api/index.ts'
import { startApiServer } from '../src/app/api-server/api-server.ts'
import { installOarlock } from '../src/app/controllers/install.ts'
import { roleBinding } from '../src/app/manifests/rule.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import type { NewObject } from '../src/kubernetes/object/index.ts'
import { runOarlock } from './support/run-program.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-rights-'))
let admin: Client
let close: () => Promise<void>

/** Users by name, with the ClusterRoles that they have in namespace `shop`. */
const roles: Readonly<Record<string, readonly string[]>> = {
  ann: ['oarlock:view', 'oarlock:edit', 'oarlock:admin'],
  kim: ['oarlock:canceler'],
  ned: ['oarlock:destroyer'],
}
const kubeconfigOf = (user: string) => join(dataDir, `${user}.kubeconfig`)
const oarlock = (user: string, ...args: string[]) => runOarlock([...args, '--kubeconfig', kubeconfigOf(user)])

before(async () => {
  const api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 } })
  close = () => api.server.close({ graceMs: 200 })
  admin = await api.connect({ name: 'root', groups: ['system:masters'] }, 'test')
  await installOarlock(admin)
  await admin.resource(namespaceResource).create({ metadata: { name: 'shop' } })
  const { url, caCertificate } = api.server
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(caCertificate).toString('base64') }
  for (const [name, bound] of Object.entries<readonly string[]>({ ...roles, root: [] })) {
    const token = api.server.issueToken({ name, groups: name === 'root' ? ['system:masters'] : [], ttlMs: 3_600_000 })
    const named = {
      clusters: [{ name, cluster }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: 'shop' } }],
    }
    writeFileSync(kubeconfigOf(name), JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...named, 'current-context': name }))
    for (const role of bound) {
      const binding = roleBinding('shop', `${name}-${role.replace(':', '-')}`, role, [{ kind: 'User', name } as never])
      await admin.resource(await admin.discover(binding.apiVersion, binding.kind)).create(binding as NewObject<object>)
    }
  }
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, deletion: 'Orphan' }
  await admin.resource(stackResource).create({ metadata: { name: 'web', namespace: 'shop' }, spec })
})
after(async () => {
  await admin?.close()
  await close?.()
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
})

test('destroying a Stack with deletion Orphan needs the right to change it, too', async () => {
  const { code, stderr } = await oarlock('ned', 'destroy', 'web', '--yes', '--no-wait')
  equal(code, 4, stderr)
  match(stderr, /keeps its resources when it is deleted .* needs the permission to update stacks in namespace shop$/m)
  match(stderr, /hint: the ClusterRole oarlock:edit grants it .*; "oarlock delete stack\/web -n shop" deletes the Stack alone$/m)
  equal((await admin.resource(stackResource).get('web', { namespace: 'shop' })).spec.deletion, 'Orphan')
})

test('reset-fence checks the right before it reads, prints or asks anything', async () => {
  const { code, stdout, stderr } = await oarlock('ann', 'state', 'reset-fence', 'web')
  equal(code, 4, stderr)
  equal(stdout, '')
  match(
    stderr,
    /^oarlock: resetting the fence of stack\/web needs the permission to update stacks\/fence in namespace shop\n *hint: only administrators/m,
  )
})

test('worker revoke names who has the permission', async () => {
  const { code, stderr } = await oarlock('ann', 'worker', 'revoke', 'w-1')
  equal(code, 4, stderr)
  match(stderr, /secrets[\s\S]*hint: only administrators of the cluster and processes of Oarlock have this permission/)
})

test('the ClusterRole oarlock:canceler cancels Runs, and deletes none', async () => {
  const stack = await admin.resource(stackResource).get('web', { namespace: 'shop' })
  await admin.resource(runResource).create({
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'oarlock.dev/stack': 'web' } },
    spec: {
      ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'default', priority: 0 },
      stackRef: { name: 'web', uid: stack.metadata.uid, generation: 1 },
      stack: stack.spec,
    },
  })
  const canceled = await oarlock('kim', 'cancel', 'web')
  equal(canceled.code, 0, canceled.stderr)
  equal((await admin.resource(runResource).get('web-1', { namespace: 'shop' })).spec.cancel, true)
  const changed = await oarlock('kim', 'delete', 'run/web-1')
  equal(changed.code, 4, changed.stderr)
})

test('a Run that does not exist: the hint names the options that find it in another namespace', async () => {
  const { code, stderr } = await oarlock('ann', 'logs', 'run/web-9')
  equal(code, 3, stderr)
  match(
    stderr,
    /run "web-9" not found in namespace shop\n *hint: "oarlock get runs -A" lists all Runs; -n NAMESPACE selects another namespace/,
  )
})

test('the hint of an invalid object names its kind', async () => {
  const file = join(dataDir, 'tenant.yaml')
  writeFileSync(file, 'apiVersion: oarlock.dev/v1alpha1\nkind: Tenant\nmetadata: { name: a }\nspec: { weight: 5000 }\n')
  const { code, stderr } = await oarlock('root', 'apply', '-f', file)
  equal(code, 4, stderr)
  match(stderr, /hint: "kubectl explain tenant\.spec" and docs\/reference\/ list the allowed fields/)
})

test('a Tenant whose namespace belongs to an older one is not ready, which its columns show', async () => {
  const tenants = admin.resource(tenantResource)
  await tenants.create({ metadata: { name: 'newer' }, spec: { namespaces: ['shop'] } })
  const ready = { type: 'Ready', status: 'False', reason: 'NamespaceConflict', message: 'm', lastTransitionTime: '2026-01-01T00:00:00Z' }
  await tenants.patchStatus('newer', { status: { conditions: [ready] } })
  const { stdout } = await oarlock('root', 'get', 'tenants')
  match(stdout, /^NAME +READY [\s\S]*\nnewer +False /)
})
