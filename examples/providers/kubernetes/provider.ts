/** The provider: `node examples/providers/kubernetes/provider.ts [--install-kinds] [--shards N] [KUBECONFIG]`. */
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { managed } from '../../../src/controllers/managed/index.ts'
import { createClient, installKinds } from '../../../src/kubernetes/client/index.ts'
import { type Controller, consoleLog, Manager } from '../../../src/kubernetes/controller/index.ts'
import { Clusters } from './clusters.ts'
import { kinds } from './kinds.ts'
import { objectOptions } from './remote-object.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard'; readonly pollIntervalMs?: number; readonly deletionCheckMs?: number }

export function kubernetesController(clusters: Clusters, options: ProviderOptions = {}): Controller {
  return managed({ ...objectOptions(clusters), ...options })
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'install-kinds': { type: 'boolean' }, shards: { type: 'string' }, port: { type: 'string', default: '8080' } },
  })
  const client = await createClient({ kubeconfig: positionals[0] })
  if (values['install-kinds']) await installKinds(client, kinds)
  const namespace = process.env.POD_NAMESPACE ?? 'default'
  const slots = Number(values.shards ?? 1)
  const lease = { namespace, leaseName: 'provider-kubernetes', identity: `${hostname()}-${process.pid}` }
  const clusters = new Clusters()
  const manager = new Manager({
    client,
    log: consoleLog('info'),
    probes: { port: Number(values.port) },
    ...(slots > 1 ? { shards: { name: 'provider-kubernetes', namespace, slots } } : { leaderElection: lease }),
  })
  manager.add(kubernetesController(clusters, { lock: slots > 1 ? 'shard' : 'none' }))
  await manager.run()
  await clusters.close()
  await client.close()
}
