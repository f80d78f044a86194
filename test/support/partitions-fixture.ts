import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Installation, type InstallationOptions } from '../../examples/partitions/installation.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { freePorts } from './free-ports.ts'
import { createTenant } from './gateway/create-tenant.ts'

/** The partitions and the gateway of one suite, each a process of `oarlock`. */
export class PartitionsFixture {
  /** Of the installation; removed by {@link stop}. */
  readonly directory = mkdtempSync(join(tmpdir(), 'oarlock-partitions-'))
  #installation: Installation | undefined
  #client: Client | undefined

  /**
   * The client is one of the gateway.
   * @param resourcePartitions default: none. @param tenants the partition of each Tenant, which has a namespace of its name; default: none.
   */
  async start({
    tenantPartitions,
    resourcePartitions = [],
    tenants = {},
  }: Pick<InstallationOptions, 'tenantPartitions'> &
    Partial<Pick<InstallationOptions, 'resourcePartitions'>> & { readonly tenants?: Readonly<Record<string, string>> }): Promise<{
    readonly installation: Installation
    readonly client: Client
  }> {
    const { directory } = this
    const [gatewayPort = 0] = await freePorts(1)
    const installation = await Installation.start({ directory, tenantPartitions, resourcePartitions, gatewayPort })
    this.#installation = installation
    const client = await createClient({ kubeconfig: installation.kubeconfig })
    this.#client = client
    for (const [name, partition] of Object.entries(tenants)) await createTenant(client, name, partition)
    return { installation, client }
  }

  async stop(): Promise<void> {
    await this.#client?.close()
    await this.#installation?.stop()
    // Workers that have just ended may still write.
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}
