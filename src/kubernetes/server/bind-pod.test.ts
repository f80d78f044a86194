import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestServer, type TestServer } from './server.testing.ts'

let server: TestServer
before(async () => {
  server = await startTestServer()
})
after(() => server?.close())

const pods = '/api/v1/namespaces/default/pods'
const create = async (name: string, spec: object = {}) => {
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ name: 'a', image: 'a' }], ...spec } }
  const answer = await server.call(pods, { method: 'POST', body })
  equal(answer.code, 201)
  return answer.body
}
const bind = (name: string, target: object, metadata: object = {}) =>
  server.call(`${pods}/${name}/binding`, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name, ...metadata }, target },
  })

test('a binding assigns a Pod to a Node once, with its annotations and condition', async () => {
  const { metadata } = await create('a')
  const answer = await bind('a', { kind: 'Node', name: 'n1' }, { uid: metadata.uid, annotations: { why: 'x' } })
  deepEqual([answer.code, answer.body.kind, answer.body.status], [201, 'Status', 'Success'])
  const { body } = await server.call<{
    spec: { nodeName: string }
    metadata: { annotations: object }
    status: { conditions: { type: string; status: string }[] }
  }>(`${pods}/a`)
  deepEqual([body.spec.nodeName, body.metadata.annotations], ['n1', { why: 'x' }])
  deepEqual(
    body.status.conditions.map(({ type, status }) => [type, status]),
    [['PodScheduled', 'True']],
  )
  const again = await bind('a', { kind: 'Node', name: 'n2' })
  equal(again.code, 409)
  match(again.body.message ?? '', /pod a is already assigned to node "n1"/)
})

test('a binding without a Node, of another Pod of the name, of none, or against a gate is rejected', async () => {
  await create('b', { schedulingGates: [{ name: 'example.com/wait' }] })
  const code = async (...binding: Parameters<typeof bind>) => {
    const { code, body } = await bind(...binding)
    return `${code} ${body.message}`
  }
  match(await code('b', { kind: 'Node', name: 'n1' }), /409 .*pod b has non-empty .spec.schedulingGates/)
  match(await code('b', { kind: 'Node', name: 'n1' }, { uid: 'other' }), /409 .*UID in precondition: other/)
  match(await code('b', { kind: 'Service', name: 'n1' }), /422 .*target.kind: Unsupported value: "Service"/)
  match(await code('b', {}), /422 .*target.name: Required value/)
  match(await code('none', { kind: 'Node', name: 'n1' }), /404 pods "none" not found/)
})
