/** The provider: `node examples/providers/postgresql/provider.ts [--install-kinds] [--shards N] [KUBECONFIG]`. */
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { managed } from '../../../src/controllers/managed/index.ts'
import { createClient, installKinds } from '../../../src/kubernetes/client/index.ts'
import { type Controller, consoleLog, Manager } from '../../../src/kubernetes/controller/index.ts'
import { databaseOptions } from './database.ts'
import { extensionOptions } from './extension.ts'
import { grantOptions } from './grant.ts'
import { kinds } from './kinds.ts'
import { roleOptions } from './role.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard'; readonly pollIntervalMs?: number; readonly deletionCheckMs?: number }

/** The controllers of all four kinds. */
export function postgresqlControllers(options: ProviderOptions = {}): Controller[] {
  return [
    managed({ ...databaseOptions, ...options }),
    managed({ ...roleOptions, ...options }),
    managed({ ...grantOptions, ...options }),
    managed({ ...extensionOptions, ...options }),
  ]
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
  const lease = { namespace, leaseName: 'provider-postgresql', identity: `${hostname()}-${process.pid}` }
  const manager = new Manager({
    client,
    log: consoleLog('info'),
    probes: { port: Number(values.port) },
    ...(slots > 1 ? { shards: { name: 'provider-postgresql', namespace, slots } } : { leaderElection: lease }),
  })
  for (const controller of postgresqlControllers({ lock: slots > 1 ? 'shard' : 'none' })) manager.add(controller)
  await manager.run()
  await client.close()
}
