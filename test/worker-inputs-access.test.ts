/** A namespace whose Secrets the stores may not use, on a server that authorizes them by RBAC only. */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { oarlockResources, type Run, runResource, stackResource, systemNamespace, workersNamespace } from '../src/api/index.ts'
import { authenticateByTokenReview } from '../src/app/delegated-auth/authenticate-by-token-review.ts'
import { applyObjects, oarlockManifests } from '../src/app/manifests/index.ts'
import { createStoreHandlers, openStores } from '../src/app/stores/stores.ts'
import { failureOf } from '../src/execution/worker/run/failure.ts'
import { readRunInputs } from '../src/execution/worker/run/run-configuration.ts'
import {
  type Client,
  createClient,
  installKinds,
  namespaceResource,
  secretResource,
  serviceAccountResource,
} from '../src/kubernetes/client/index.ts'
import { silentLog } from '../src/kubernetes/controller/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { StateClient } from '../src/stores/state/index.ts'
import { runSpec, stackSpec } from './rights/fixture.ts'
import { runProgram, skipWithout } from './support/run-program.ts'

async function tokenOf(admin: Client, namespace: string, name: string): Promise<string> {
  const response = await admin.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } },
  })
  return ((await response.json()) as { status: { token: string } }).status.token
}

test('a Run fails before its engine starts, and the command in its message allows the next one', {
  skip: skipWithout('kubectl'),
}, async t => {
  await using api = await startTestServer()
  const admin = api.client
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-inputs-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  await installKinds(admin, oarlockResources)
  for (const name of [systemNamespace, workersNamespace, 'shop'])
    await admin.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  const isOfStores = ({ metadata: { name } }: { metadata: { name: string } }) => /^oarlock([:-]stores|:run-inputs)$/.test(name)
  await applyObjects(admin, oarlockManifests({ policies: true }).filter(isOfStores))
  await admin.resource(serviceAccountResource).create({ metadata: { name: 'vm', namespace: workersNamespace } })
  await admin.resource(secretResource).create({ metadata: { name: 'web-input', namespace: 'shop' }, stringData: { password: 'pw' } })
  // Without it, the outputs would be garbage.
  const { metadata } = await admin.resource(stackResource).create({ metadata: { name: 'web', namespace: 'shop' }, spec: stackSpec })
  const created = await admin.resource(runResource).create({
    metadata: { name: 'web-1', namespace: 'shop' },
    spec: runSpec('web', metadata.uid, { workerName: 'vm' }),
  })
  const run: Run = await admin
    .resource(runResource)
    .patchStatus(created.metadata.name, { status: { phase: 'Preparing' } }, { namespace: 'shop' })

  const { url: server, caCertificate } = api.server
  const client = await createClient({ cluster: { server, caCertificate, token: await tokenOf(admin, systemNamespace, 'oarlock-stores') } })
  const stores = await openStores({ dataDir, log: silentLog })
  const { state: handler } = createStoreHandlers(stores, { client, log: silentLog })
  const authenticate = authenticateByTokenReview(client)
  const listener = createServer(async (request, response) => {
    await handler(request, response, { user: await authenticate((request.headers.authorization ?? '').slice('Bearer '.length)) })
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const token = await tokenOf(admin, workersNamespace, 'vm')
  const state = new StateClient({ baseUrl, token, namespace: 'shop', stack: 'web', runName: 'web-1', epoch: 1, deadlineMs: 0 })
  try {
    const read = async () => await readRunInputs({ run, state, signal: new AbortController().signal, log: { append: () => {} } })
    let message = ''
    await rejects(read(), (error: unknown) => {
      const failure = failureOf(error)
      message = failure.message ?? ''
      deepEqual([failure.reason, failure.retryable], ['WorkerInputsNotAllowed', true])
      return true
    })
    const [, command = ''] = /allow it with: kubectl (create rolebinding .* -n shop) /.exec(message) ?? []
    const granted = await runProgram('kubectl', [...command.split(' '), '--kubeconfig', api.kubeconfigPath])
    equal(granted.code, 0, granted.text)
    deepEqual((await read()).inputs.variables, { password: 'pw' })
    await state.putOutputs({ data: { url: Buffer.from('"http://web"').toString('base64') }, sensitive: [] })
    const { data } = await admin.resource(secretResource).get('web-outputs', { namespace: 'shop' })
    equal(Buffer.from(data?.url ?? '', 'base64').toString(), '"http://web"')
  } finally {
    await state.close()
    listener.closeAllConnections()
    listener.close()
    await stores.close()
    await client.close()
  }
})
