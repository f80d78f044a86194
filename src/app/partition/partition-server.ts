import type { Log } from '../../kubernetes/controller/index.ts'
import type { ApiServer, AuditOptions } from '../../kubernetes/server/index.ts'
import type { Address } from '../address.ts'
import type { ApiServerRoleOptions } from '../api-server/api-server.ts'
import type { AppStartError } from '../app-start-error.ts'
import type { PartitionIdentity } from './identity.ts'

export type PartitionServerOptions = {
  /** Holds the database, keys and certificates of the API server. */
  readonly dataDir: string
  readonly listen: Address
  /** Additional host names and IP addresses for the TLS certificate. */
  readonly names?: readonly string[]
  /** The URL at which gateways and other partitions reach the server. Default: that of the listener. */
  readonly advertiseUrl?: string | undefined
  readonly audit?: AuditOptions | undefined
  readonly log: Log
} & Pick<ApiServerRoleOptions, 'storage' | 'namespaceDefaults'>

export type PartitionServer = {
  readonly server: ApiServer
  readonly identity: PartitionIdentity
  /** Why it is not what the gateway takes it for yet; empty if it is. */
  notReady(): readonly string[]
  /** Resolves if the server must stop, because another data directory is that of the Partition by now. */
  readonly rejected: Promise<AppStartError>
  stop(options: { graceMs: number }): Promise<void>
}

/** As whom the process of a partition works in its own server. */
export const partitionUser = { name: 'oarlock:partition', groups: ['system:masters'] }
