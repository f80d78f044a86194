/**
 * The operator as it runs in a cluster: any number of replicas, of which one leads. See deploy/ and README.md.
 * In a Pod it uses the Pod's service account, elsewhere the cluster that kubectl would use. The CRDs have to be there.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { consoleLog, Manager } from '../../src/kubernetes/controller/index.ts'
import { componentController } from './component-controller.ts'
import { componentResource } from './kinds.ts'
import { kymaController, ownerOf, succeededOf } from './kyma-controller.ts'
import { inCluster } from './settings.ts'
import { newCounters } from './stats.ts'

const registry = new Registry()
collectDefaultMetrics({ register: registry })
const client = await createClient({ userAgent: 'kyma-operator' })
const manager = new Manager({
  client,
  registry,
  log: consoleLog('info'),
  probes: { port: Number(process.env.PROBE_PORT ?? 8080) },
  leaderElection: {
    leaseName: 'kyma-operator',
    namespace: process.env.POD_NAMESPACE ?? 'default',
    // A restarted container has the name of its Pod again, and must not take itself for the process that led before.
    identity: `${hostname()}_${randomUUID()}`,
  },
})
manager.informer(componentResource, { indexes: { owner: ownerOf, succeeded: succeededOf }, hotObjects: inCluster.hotObjects })
const counters = newCounters()
manager.add(componentController(manager, inCluster, counters))
manager.add(kymaController(manager, inCluster, counters))
await manager.run({ graceMs: 20_000 })
await client.close()
