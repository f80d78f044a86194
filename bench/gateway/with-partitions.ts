import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Installation } from '../../examples/partitions/installation.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { freePorts } from '../../test/support/free-ports.ts'
import { createTenant } from '../../test/support/gateway/create-tenant.ts'

export type Partitions = {
  readonly installation: Installation
  /** Through the gateway. */
  readonly gateway: Client
  /** By partition of Tenants, past the gateway. */
  readonly direct: ReadonlyMap<string, Client>
  /** One in each partition of Tenants, by its name. */
  readonly namespaces: ReadonlyMap<string, string>
}

/** Home, partitions of Tenants and a gateway, each a process, for the time of `use`. */
export async function withPartitions<T>(names: readonly string[], use: (partitions: Partitions) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-gateway-'))
  const [gatewayPort = 0] = await freePorts(1)
  const clients: Client[] = []
  let installation: Installation | undefined
  const open = async (kubeconfig: string) => {
    const client = await createClient({ kubeconfig, userAgent: 'bench', connections: 8 })
    clients.push(client)
    return client
  }
  try {
    installation = await Installation.start({ directory, tenantPartitions: names, resourcePartitions: [], gatewayPort })
    const gateway = await open(installation.kubeconfig)
    const direct = new Map<string, Client>()
    const namespaces = new Map<string, string>()
    for (const name of names) {
      direct.set(name, await open(installation.partitionKubeconfig(name)))
      const namespace = `ns-${name}`
      await createTenant(gateway, name, name, namespace)
      namespaces.set(name, namespace)
    }
    return await use({ installation, gateway, direct, namespaces })
  } finally {
    for (const client of clients) await client.close()
    await installation?.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}
