/**
 * A member of a ring, for `sharding-processes.test.ts`: `node sharded-child.ts KUBECONFIG IDENTITY LEDGER`. It reconciles every ConfigMap of
 * namespace `sharded` again and again: it writes a line to the ledger, a sink that checks nothing, and its fence to the object, at the version
 * that it has read.
 */
import { openSync, writeSync } from 'node:fs'
import { configMapResource, createClient } from '../../src/kubernetes/client/index.ts'
import { controller, Manager, silentLog } from '../../src/kubernetes/controller/index.ts'
import { isReason } from '../../src/kubernetes/object/index.ts'
import { shardedDurations } from './sharded-durations.ts'

const [kubeconfig = '', identity = '', ledgerPath = ''] = process.argv.slice(2)
const ledger = openSync(ledgerPath, 'a')
const client = await createClient({ kubeconfig, requestTimeoutMs: 1_000 })
const manager = new Manager({
  client,
  log: silentLog,
  listWatch: { backoff: { minMs: 100, maxMs: 500 } },
  shards: { name: 'processes', namespace: 'sharded', slots: 3, identity, ...shardedDurations },
})
manager.add(
  controller({
    name: 'maps',
    for: configMapResource,
    informer: { namespace: 'sharded' },
    maxConcurrent: 20,
    async reconcile({ key, object, shard, client: owned }) {
      if (!object || !shard) return
      const { fence } = shard
      for (let call = 0; call < 3; call++) {
        // Read first: if the process is stopped after it, the line still refers to an instant at which it was true.
        const atNs = process.hrtime.bigint()
        if (!shard.mayWrite()) return
        writeSync(ledger, `${JSON.stringify({ key, fence, atNs: String(atNs), identity })}\n`)
        await new Promise(resolve => setTimeout(resolve, 5))
      }
      try {
        const maps = owned.resource(configMapResource)
        const { resourceVersion } = object.metadata
        await maps.patch(
          object.metadata.name,
          { data: { fence: String(fence), identity } },
          { type: 'merge', namespace: 'sharded', resourceVersion },
        )
      } catch (error) {
        if (!isReason(error, 'Conflict')) throw error
      }
      return { requeueAfterMs: 100 }
    },
  }),
)
await manager.run({ graceMs: 10_000 })
await client.close()
