/** Two `oarlock controller` processes; the leader is killed or stopped with 20 Runs under way. `npm run bench -- failover` repeats it. */
import { deepEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Client, createClient } from '../src/kubernetes/client/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { Failover, takeoverBudgetMs } from './support/failover.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { RoleProcesses } from './support/role-process.ts'

const signals = ['SIGKILL', 'SIGSTOP'] as const

async function survives(client: Client, base: string, kubeconfig: string): Promise<void> {
  const failover = await Failover.start(client, base, kubeconfig)
  try {
    for (const signal of signals) {
      const { takeoverMs, duplicates, lateWrites, exitCode } = await failover.trial(signal, 20)
      ok(takeoverMs < takeoverBudgetMs, `${signal}: another process led after ${Math.round(takeoverMs)} ms`)
      deepEqual([duplicates, lateWrites, exitCode], [0, 0, signal === 'SIGSTOP' ? 0 : undefined], signal)
    }
  } finally {
    await failover.close()
  }
}

test('invariant 7: the leader of two controllers is killed, then stopped and resumed, on the embedded server', async () => {
  const base = makeDataDir()
  const roles = new RoleProcesses(base)
  try {
    const api = await roles.start('api', ['serve', '--data', '.', '--listen', '127.0.0.1:0'], /kubeconfig/)
    const kubeconfig = join(api.directory, 'kubeconfig')
    const client = await createClient({ kubeconfig })
    await survives(client, base, readFileSync(kubeconfig, 'utf8')).finally(() => client.close())
  } finally {
    await roles.stopAll()
    removeDirectory(base)
  }
})

test('invariant 7: the same on a real kube-apiserver', { skip: peerMissing() }, async () => {
  const base = makeDataDir()
  const peer = await startPeer()
  try {
    const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
    await survives(client, base, peerKubeconfig(peer)).finally(() => client.close())
  } finally {
    await peer.close()
    removeDirectory(base)
  }
})
