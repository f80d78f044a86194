import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources, type RunSpec, runResource, tenantResource, workerPoolResource } from '../src/api/index.ts'
import { createClient, installKinds } from '../src/kubernetes/client/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'

test('kube-apiserver: what was required of a Run is immutable from its assignment on, and a policy that promises too much is rejected', {
  skip: peerMissing(),
}, async t => {
  const peer = await startPeer()
  t.after(() => peer.close())
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  t.after(() => client.close())
  await installKinds(client, oarlockResources)

  const allowedNetworks = ['None'] as 'None'[]
  const message = /allowedNetworks without Host requires minimumIsolation Sandbox or Pod/
  await rejects(client.resource(tenantResource).create({ metadata: { name: 'open' }, spec: { allowedNetworks } }), message)
  await rejects(
    client.resource(workerPoolResource).create({ metadata: { name: 'open' }, spec: { mode: 'Process', allowedNetworks } }),
    message,
  )

  const runs = client.resource(runResource)
  const namespace = 'default'
  const spec: RunSpec = {
    type: 'Apply',
    stackRef: { name: 'app', uid: 'u', generation: 1 },
    epoch: 1,
    stack: { engine: 'command', source: {} },
    revision: 'r',
    inputsDigest: 'i',
    reason: 'NewGeneration',
    pool: 'default',
    priority: 0,
  }
  await runs.create({ metadata: { name: 'app-1', namespace }, spec })
  const patch = async (change: object) => await runs.patch('app-1', { spec: change }, { type: 'merge', namespace })
  await patch({ workerName: 'w', assignedAt: '2026-01-01T00:00:00Z', policy: { minimumIsolation: 'Sandbox', allowedNetworks } })
  for (const policy of [null, { minimumIsolation: 'Process' }, { minimumIsolation: 'Sandbox', allowedNetworks: ['Host'] }])
    await rejects(patch({ policy }), /policy is immutable once the Run has a worker/)
  await patch({ priority: 1 })
})
