/** The plain manifests for kustomize on a real kube-apiserver, as docs/install-kubernetes.md applies them. */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { workerPoolResource } from '../src/api/index.ts'
import { createClient } from '../src/kubernetes/client/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { runOarlock, runProgram, skipWithout } from './support/run-program.ts'

test('kubectl applies deploy/kustomize to an empty cluster, and again without a change', {
  skip: peerMissing() ?? skipWithout('kubectl'),
  timeout: 240_000,
}, async () => {
  const peer = await startPeer()
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-kustomize-'))
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  try {
    const kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(kubeconfig, peerKubeconfig(peer))
    const apply = async () => {
      const folder = join(import.meta.dirname, '..', 'deploy', 'kustomize')
      const flags = ['--server-side', '--validate=strict', `--kubeconfig=${kubeconfig}`]
      return await runProgram('kubectl', ['apply', '-k', folder, ...flags], { env: { KUBECONFIG: undefined } })
    }
    // The pool needs the CRDs.
    const first = await apply()
    notEqual(first.code, 0)
    match(first.stderr, /no matches for kind "WorkerPool"/)
    deepEqual(
      first.stderr.split('\n').filter(line => /error/i.test(line) && !line.includes('WorkerPool')),
      [],
    )
    const second = await apply()
    equal(second.code, 0, second.text)
    const pools = client.resource(workerPoolResource)
    const pool = await pools.get('default')
    equal((await apply()).code, 0)
    equal((await pools.get('default')).metadata.resourceVersion, pool.metadata.resourceVersion)
    const checked = await runOarlock(['crds', 'check', '--kubeconfig', kubeconfig])
    equal(checked.code, 0, checked.text)
  } finally {
    await client.close()
    await peer.close()
    rmSync(directory, { recursive: true, force: true })
  }
})
