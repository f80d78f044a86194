import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources } from '../../api/index.ts'
import { type Client, crdResource, createClient } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { describeResource } from '../../kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { oarlockManifests } from '../manifests/index.ts'
import { prepareServer, startControllerProcess } from './controller-process.ts'
import {
  crdRevision,
  crdRevisionAnnotation,
  describeCrdState,
  installOarlock,
  needsPolicies,
  policyRevisionAnnotation,
  readCrdState,
  upgradeCrds,
} from './install.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-install-'))
let server: ApiServer
let client: Client

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
})
after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const controllerError = async (crds: 'check' | 'install'): Promise<AppStartError> => {
  let found: unknown
  await rejects(
    startControllerProcess({
      ...{ client, crds, cacheDir: join(dataDir, 'cache'), allowPaths: [], version: '0' },
      access: { kubeconfig: server.kubeconfigPath },
      healthAddress: { host: '127.0.0.1', port: 0 },
      queue: { dataDir: join(dataDir, 'controller'), listen: { host: '127.0.0.1', port: 0 }, names: [] },
      log: silentLog,
    }),
    (error: unknown) => {
      found = error
      return error instanceof AppStartError
    },
  )
  return found as AppStartError
}

const setRevision = async (revision: string | null, name: string) => {
  const patch = { metadata: { annotations: { [crdRevisionAnnotation]: revision } } }
  await client.resource(crdResource).patch(name, patch as object, { type: 'merge' })
}

test('the revision was raised with the last change of the CRDs, roles and policies', () => {
  const text = JSON.stringify([oarlockResources.map(resource => resource.toCrd()), oarlockManifests({ policies: true })])
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  // After a change of one of them: raise crdRevision in install.ts, and enter both here. A release never changes a revision.
  deepEqual({ revision: crdRevision, digest }, { revision: 47, digest: 'b3ce7cd302633e18' })
})

test('a controller rejects a server without CRDs or with older ones, and names the command that helps', async () => {
  equal((await readCrdState(client)).kind, 'missing')
  const missing = await controllerError('check')
  match(missing.message, /lacks the CRDs .*stacks\.oarlock\.dev/)
  match(missing.hint ?? '', /oarlock controller --crds install/)
  await installOarlock(client)
  deepEqual(await readCrdState(client), { kind: 'current' })
  // One that was installed before there were revisions.
  await setRevision(null, 'stacks.oarlock.dev')
  deepEqual(await readCrdState(client), { kind: 'older', revision: 0 })
  const older = await controllerError('install')
  equal(older.kind, 'Crds')
  match(older.message, /has CRDs of revision 0, and this version needs \d+/)
  match(older.hint ?? '', /oarlock controller --crds upgrade/)
})

test('upgradeCrds replaces older CRDs, and changes no roles', async () => {
  await setRevision(String(crdRevision - 1), 'stacks.oarlock.dev')
  const older = await readCrdState(client)
  equal(describeCrdState(older), `has CRDs of revision ${crdRevision - 1}, and this version needs ${crdRevision}`)
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/oarlock:view'
  const readRole = async () => (await client.request({ method: 'GET', path })).json()
  const role = await readRole()
  await upgradeCrds(client)
  deepEqual(await readCrdState(client), { kind: 'current' })
  deepEqual(await readRole(), role)
})

test('a controller that may upgrade installs the roles and policies that upgradeCrds left out', async () => {
  const clusterRoles = describeResource<{ rules?: object[] | null }>({
    ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
  })
  const roles = client.resource(clusterRoles)
  const annotations = { [policyRevisionAnnotation]: String(crdRevision - 1) }
  await roles.patch('oarlock:controller', { metadata: { annotations }, rules: [] }, { type: 'merge' })
  await setRevision(String(crdRevision - 1), 'stacks.oarlock.dev')
  await upgradeCrds(client)
  deepEqual([(await readCrdState(client)).kind, await needsPolicies(client)], ['current', true])
  for (const [crds, isInstalled] of [
    ['check', false],
    ['install', false],
    ['upgrade', true],
  ] as const) {
    await prepareServer({ client, crds, log: silentLog })
    const { rules } = await roles.get('oarlock:controller')
    deepEqual([(rules ?? []).length > 0, await needsPolicies(client)], [isInstalled, !isInstalled], crds)
  }
})

test('roles and policies of a newer version are kept', async () => {
  const patch = { metadata: { annotations: { [policyRevisionAnnotation]: String(crdRevision + 1) } } }
  await client.request({
    ...{ method: 'PATCH', path: '/apis/rbac.authorization.k8s.io/v1/clusterroles/oarlock:controller', body: patch },
    headers: { 'content-type': 'application/merge-patch+json' },
  })
  equal(await needsPolicies(client), false)
})

test('upgradeCrds changes no CRD if the server rejects one of them', async () => {
  const crds = client.resource(crdResource)
  const name = 'tenants.oarlock.dev'
  const { metadata, ...own } = await crds.get(name)
  await crds.delete(name)
  await eventually(async () => (await crds.getOrUndefined(name)) === undefined, 'it to be deleted')
  // Of someone else: its scope cannot be changed.
  await crds.create({ metadata: { name }, spec: { ...own.spec, scope: 'Namespaced' } } as never)
  const revision = async () => (await crds.listAll()).items.map(each => [each.metadata.name, each.metadata.resourceVersion])
  const before = await revision()
  await rejects(upgradeCrds(client), /tenants\.oarlock\.dev.*scope/)
  deepEqual(await revision(), before)
  await crds.delete(name)
  await eventually(async () => (await crds.getOrUndefined(name)) === undefined, 'it to be deleted')
  await upgradeCrds(client)
})

test('one newer CRD suffices: its installation by a newer version may have been interrupted', async () => {
  await setRevision(String(crdRevision + 1), 'runs.oarlock.dev')
  deepEqual(await readCrdState(client), { kind: 'newer', revision: crdRevision + 1 })
})

test('newer CRDs are kept: an older controller may still be running during an update', async () => {
  for (const { plural, group } of oarlockResources) await setRevision(String(crdRevision + 1), `${plural}.${group}`)
  deepEqual(await readCrdState(client), { kind: 'newer', revision: crdRevision + 1 })
  await prepareServer({ client, crds: 'upgrade', log: silentLog })
  deepEqual(await readCrdState(client), { kind: 'newer', revision: crdRevision + 1 })
})
