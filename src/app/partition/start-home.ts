import { join, resolve } from 'node:path'
import { gatewayKinds, partitionResource } from '../../gateway/index.ts'
import { type Client, installKinds } from '../../kubernetes/client/index.ts'
import { Manager } from '../../kubernetes/controller/index.ts'
import { frontProxyAuthority } from '../../kubernetes/server/index.ts'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { startApiServer } from '../api-server/api-server.ts'
import { installOarlock, requireNoNewerCrds } from '../controllers/install.ts'
import { recordOwnPartition } from '../own-partition.ts'
import { claimExisting } from './claim-existing.ts'
import { claimsOf } from './claims-of.ts'
import { EstablishCrds } from './establish-crds.ts'
import { ownersOfHome } from './find-owners.ts'
import { homeNumber, type PartitionIdentity, recordPartitionIdentity } from './identity.ts'
import { gatewayProxyName } from './issue-configuration.ts'
import { MapEpoch } from './map-epoch.ts'
import { type PartitionServer, type PartitionServerOptions, partitionUser } from './partition-server.ts'

/**
 * Starts the home partition: an API server that has the routing map, and what the other partitions copy. A server that was none before can become it:
 * what it has is claimed.
 * @throws {AppStartError} if the data directory or the address cannot be used.
 */
export async function startHome(options: PartitionServerOptions & { readonly name: string }): Promise<PartitionServer> {
  const { name, log } = options
  const dataDir = resolve(options.dataDir)
  const identity = { name, number: homeNumber }
  const directory = recordPartitionIdentity(dataDir, identity)
  const pkiDir = join(dataDir, 'pki')
  makeDirectories(pkiDir, 0o700)
  const { certificate: caCertificate } = await frontProxyAuthority(pkiDir, Date.now())
  const establish = new EstablishCrds(name)
  const mapEpoch = new MapEpoch()
  const frontProxy = { caCertificate, allowedNames: [gatewayProxyName] }
  const api = await startApiServer({
    ...options,
    dataDir,
    frontProxy,
    establishCrd: establish.decide,
    owners: ownersOfHome,
    tenants: { partition: name, isHome: true },
    mapEpoch: () => mapEpoch.value,
  })
  const client = await api.connect(partitionUser, 'oarlock-partition')
  const stopping = new AbortController()
  const { signal } = stopping
  const manager = new Manager({ client, log })
  try {
    await requireNoNewerCrds(client, dataDir)
    await installOarlock(client)
    await installKinds(client, gatewayKinds)
    await reportAddress(client, identity, options.advertiseUrl ?? api.server.url, api.server.caCertificate)
    await recordOwnPartition(client, directory)
    await claimExisting({ local: client, home: client, partition: name, keepClaimsUpTo: 0, log, signal })
    const onRaised = () => api.server.mapChanged()
    void mapEpoch.follow(client, {
      isHome: true,
      signal,
      onRaised,
      onError: error => log.warn({ err: error }, 'the Partitions cannot be read'),
    })
    establish.follow(client, { signal, onError: error => log.warn({ err: error }, 'the partitions cannot be read') })
    manager.add(claimsOf(name, client, { signal, log, keepClaimsUpTo: () => 0 }))
    await manager.start()
  } catch (error) {
    stopping.abort()
    await manager.stop()
    await client.close()
    await api.server.close()
    throw error
  }
  return {
    ...{ server: api.server, identity },
    notReady: () => [],
    rejected: new Promise(() => {}),
    async stop(stopOptions) {
      stopping.abort()
      await manager.stop()
      await client.close()
      await api.server.close(stopOptions)
    },
  }
}

/** Writes the address of home into its Partition, which is created if it does not exist. */
async function reportAddress(client: Client, { name, number }: PartitionIdentity, server: string, caCertificate: string): Promise<void> {
  const partitions = client.resource(partitionResource)
  const known = await partitions.getOrUndefined(name)
  if (!known) await partitions.create({ metadata: { name }, spec: { number, server, caCertificate, roles: [] } })
  else if (known.spec.server !== server || known.spec.caCertificate !== caCertificate)
    await partitions.patch(name, { spec: { server, caCertificate } } as object, { type: 'merge' })
}
