import { equal, ok } from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { configMapResource, createClient } from '../src/kubernetes/client/index.ts'
import { shardSelectorOf } from '../src/kubernetes/controller/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { ShardedProcesses } from './support/sharded-processes.ts'

const skip = peerMissing()

for (const shardedListAndWatch of [true, false])
  test(`kube-apiserver ${shardedListAndWatch ? 'with' : 'without'} ShardedListAndWatch: processes that are killed, stopped, cut off and restarted share keys, each with one owner`, {
    skip,
  }, async context => {
    const peer = await startPeer({ shardedListAndWatch })
    const directory = await mkdtemp(join(tmpdir(), 'oarlock-sharding-peer-'))
    const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
    let processes: ShardedProcesses | undefined
    try {
      const kubeconfigPath = join(directory, 'kubeconfig')
      await writeFile(kubeconfigPath, peerKubeconfig(peer), { mode: 0o600 })
      processes = await ShardedProcesses.start(client, kubeconfigPath, 60)
      // The server filters, or ignores the parameter: then the members do.
      const selected = await client.resource(configMapResource).list({ namespace: 'sharded', shardSelector: shardSelectorOf([0, 1, 2]) })
      equal((selected.metadata as { shardInfo?: object }).shardInfo !== undefined, shardedListAndWatch)
      equal(selected.items.length < 60, shardedListAndWatch)
      const { lines, longestIdleMs } = await processes.surviveFaults()
      ok(lines > 1_000, `${lines} calls`)
      context.diagnostic(`${lines} calls, a key was idle for ${Math.round(longestIdleMs)} ms at most`)
    } finally {
      await processes?.close()
      await client.close()
      await peer.close()
      await rm(directory, { recursive: true, force: true })
    }
  })
