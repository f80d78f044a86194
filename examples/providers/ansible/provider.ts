/** The provider: `node examples/providers/ansible/provider.ts [--install-kinds] [--shards N] [KUBECONFIG]`. */
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { managed } from '../../../src/controllers/managed/index.ts'
import { createClient, installKinds } from '../../../src/kubernetes/client/index.ts'
import { type Controller, consoleLog, Manager } from '../../../src/kubernetes/controller/index.ts'
import { ansibleRunOptions } from './ansible-run.ts'
import { kinds } from './kinds.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard' }

export function ansibleControllers(options: ProviderOptions = {}): Controller[] {
  return [managed({ ...ansibleRunOptions(), ...options })]
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
  const lease = { namespace, leaseName: 'provider-ansible', identity: `${hostname()}-${process.pid}` }
  const manager = new Manager({
    client,
    log: consoleLog('info'),
    probes: { port: Number(values.port) },
    ...(slots > 1 ? { shards: { name: 'provider-ansible', namespace, slots } } : { leaderElection: lease }),
  })
  for (const controller of ansibleControllers({ lock: slots > 1 ? 'shard' : 'none' })) manager.add(controller)
  await manager.run()
  await client.close()
}
