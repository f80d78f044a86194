/** A worker that may not use the Secrets of a namespace, on a server that authorizes it by RBAC only. */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { type Run, workersNamespace } from '../src/api/index.ts'
import { applyObjects, oarlockManifests } from '../src/app/manifests/index.ts'
import { failureOf } from '../src/execution/worker/run/failure.ts'
import { type PlanAndApplyOptions, planAndApply } from '../src/execution/worker/run/plan-and-apply.ts'
import { createClient, namespaceResource, secretResource, serviceAccountResource } from '../src/kubernetes/client/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { runProgram, skipWithout } from './support/run-program.ts'

test('a Run fails before its apply, and the command in its message allows the next one', { skip: skipWithout('kubectl') }, async () => {
  await using api = await startTestServer()
  const admin = api.client
  for (const name of [workersNamespace, 'shop']) await admin.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  await applyObjects(
    admin,
    oarlockManifests({ policies: true }).filter(({ metadata }) => metadata.name === 'oarlock:worker-inputs'),
  )
  await admin.resource(serviceAccountResource).create({ metadata: { name: 'vm', namespace: workersNamespace } })
  const response = await admin.request({
    method: 'POST',
    path: `/api/v1/namespaces/${workersNamespace}/serviceaccounts/vm/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } },
  })
  const { status } = (await response.json()) as { status: { token: string } }
  const client = await createClient({
    cluster: { server: api.server.url, caCertificate: api.server.caCertificate, token: status.token },
  })
  try {
    let applies = 0
    const run = { metadata: { name: 'web-1', namespace: 'shop' }, spec: { type: 'Apply', stackRef: { name: 'web', uid: 'u' }, stack: {} } }
    const options = {
      ...{ client, run: run as unknown as Run, isolation: undefined, context: {}, state: {} },
      engine: {
        plan: async () => ({ digest: 'd', hasChanges: true, summary: [], add: 1, change: 0, destroy: 0 }),
        apply: async () => {
          applies++
          return { changed: true, resources: 1, outputs: { url: { value: 'http://web', sensitive: false } } }
        },
      },
      reporter: { reportPhaseSoon: async () => {} },
      stopper: { signal: new AbortController().signal },
      log: { append: () => {}, addSecrets: () => {}, mask: (text: string) => text },
    } as unknown as PlanAndApplyOptions
    let message = ''
    await rejects(planAndApply(options), (error: unknown) => {
      const failure = failureOf(error)
      message = failure.message ?? ''
      deepEqual([failure.reason, failure.retryable], ['WorkerInputsNotAllowed', true])
      return true
    })
    equal(applies, 0)
    const [, command = ''] = /allow it with: kubectl (create rolebinding .* -n shop) /.exec(message) ?? []
    const granted = await runProgram('kubectl', [...command.split(' '), '--kubeconfig', api.kubeconfigPath])
    equal(granted.code, 0, granted.text)
    equal((await planAndApply(options)).phase, 'Succeeded')
    equal(applies, 1)
    const { data } = await admin.resource(secretResource).get('web-outputs', { namespace: 'shop' })
    equal(Buffer.from(data?.url ?? '', 'base64').toString(), '"http://web"')
  } finally {
    await client.close()
  }
})
