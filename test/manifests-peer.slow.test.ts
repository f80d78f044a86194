/** `oarlock manifests` with kubectl, on the embedded server and on a real kube-apiserver, where one was built (`scripts/build-peers.sh`). */
import { equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { installOarlock, readCrdState } from '../src/app/controllers/install.ts'
import { createClient } from '../src/kubernetes/client/index.ts'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { runOarlock, runProgram, skipWithout } from './support/run-program.ts'

async function expectApplied(kubeconfig: string, ...options: string[]) {
  const printed = await runOarlock(['manifests', ...options])
  equal(printed.code, 0, printed.text)
  // Twice: also what another manager has applied must not conflict.
  for (const manager of ['kubectl', 'flux']) {
    const args = ['apply', '--server-side', '--field-manager', manager, '-f', '-', '--kubeconfig', kubeconfig]
    const { code, text } = await runProgram('kubectl', args, { input: printed.stdout })
    equal(code, 0, text)
    match(text, /stacks\.oarlock\.dev serverside-applied/)
  }
}

test('kube-apiserver: the manifests do not conflict with what a controller has installed', {
  skip: peerMissing() ?? skipWithout('kubectl'),
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-manifests-'))
  const peer = await startPeer()
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  try {
    await installOarlock(client)
    const kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(kubeconfig, peerKubeconfig(peer))
    await expectApplied(kubeconfig)
    equal((await readCrdState(client)).kind, 'current')
  } finally {
    await client.close()
    await peer.close()
    rmSync(directory, { recursive: true, force: true })
  }
})

test('embedded server: the manifests without policies install what a controller needs', { skip: skipWithout('kubectl') }, async () => {
  await using api = await startTestServer()
  await expectApplied(api.kubeconfigPath, '--no-policies')
  equal((await readCrdState(api.client)).kind, 'current')
  await installOarlock(api.client)
  await expectApplied(api.kubeconfigPath, '--no-policies')
})
