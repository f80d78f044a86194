import { test } from 'node:test'
import { createClient } from '../src/kubernetes/client/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { checkPhaseOfNewRun } from './support/check-phase-of-new-run.ts'

test('kube-apiserver: a new Run has phase Queued without a write of its status', { skip: peerMissing() }, async t => {
  const peer = await startPeer()
  t.after(() => peer.close())
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  t.after(() => client.close())
  await checkPhaseOfNewRun(client)
})
