import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PartitionRole, partitionResource } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, nameErrors } from '../../kubernetes/object/index.ts'
import {
  issueClientCertificate,
  issueFrontProxyCertificate,
  issueServingCertificate,
  readSharedTrust,
} from '../../kubernetes/server/index.ts'
import { AppStartError } from '../app-start-error.ts'
import type { GatewayConfiguration, HomeAddress, PartitionConfiguration } from './configuration.ts'
import { homeOf } from './home-of.ts'
import { homeNumber } from './identity.ts'

export const gatewayProxyName = 'oarlock-gateway'
const maxPartitions = 64
const adminsGroup = 'system:masters'

/** The address that home reports of itself, which others reach, or that of its kubeconfig. */
async function reportedAddress({ name, server, client }: HomeAddress & { readonly client: Client }): Promise<string> {
  const partition = await client.resource(partitionResource).getOrUndefined(name)
  return partition?.spec.server ?? server
}

/**
 * Creates the Partition at home, or changes its roles, and returns the configuration of its server. Called again it renews the certificate in it.
 * @param roles undefined keeps those of an existing Partition.
 * @throws {AppStartError} if there are 64 partitions, or the name cannot be used.
 */
export async function issuePartitionConfiguration(
  dataDir: string,
  { name, roles, ttlMs }: { readonly name: string; readonly roles: readonly PartitionRole[] | undefined; readonly ttlMs: number },
  nowMs: number,
): Promise<{ readonly configuration: PartitionConfiguration; readonly roles: readonly PartitionRole[] }> {
  const [reason] = nameErrors(name, 'dns1123Label')
  if (reason) throw new AppStartError('Configuration', `invalid name of a partition ${JSON.stringify(name)}`, reason)
  const home = await homeOf(dataDir)
  try {
    if (name === home.name) throw new AppStartError('Configuration', `${JSON.stringify(name)} is home itself`, 'choose another name')
    const partition = await ensurePartition(home.client, name, roles)
    const pkiDir = join(dataDir, 'pki')
    // As much as the keys of `trust` give anyway.
    const client = await issueClientCertificate(pkiDir, { name: `oarlock:partition:${name}`, groups: [adminsGroup], ttlMs }, nowMs)
    const { caCertificate } = home
    const address = { name: home.name, server: await reportedAddress(home), caCertificate }
    const trust = await readSharedTrust(pkiDir, nowMs)
    const { number } = partition
    const configuration: PartitionConfiguration = { kind: 'PartitionConfiguration', name, number, home: { ...address, client }, trust }
    return { configuration, roles: partition.roles }
  } finally {
    await home.client.close()
  }
}

/** @returns the spec of the Partition. */
async function ensurePartition(
  client: Client,
  name: string,
  roles: readonly PartitionRole[] | undefined,
): Promise<{ readonly number: number; readonly roles: readonly PartitionRole[] }> {
  const partitions = client.resource(partitionResource)
  for (;;) {
    const { items } = await partitions.listAll({})
    const known = items.find(({ metadata }) => metadata.name === name)
    if (known) {
      if (roles) await partitions.patch(name, { spec: { roles } } as object, { type: 'merge' })
      return { number: known.spec.number, roles: roles ?? known.spec.roles }
    }
    const used = new Set([homeNumber, ...items.map(({ spec }) => spec.number)])
    const number = Array.from({ length: maxPartitions }, (_, index) => index).find(index => !used.has(index))
    if (number === undefined)
      throw new AppStartError(
        'Configuration',
        `there are ${maxPartitions} partitions already, as many as resource versions can tell apart`,
        undefined,
      )
    try {
      const spec = { number, roles: [...(roles ?? [])] }
      await partitions.create({ metadata: { name }, spec })
      return spec
    } catch (error) {
      if (!isReason(error, 'AlreadyExists')) throw error
    }
  }
}

/** The configuration of a gateway that clients reach by `names`, and the kubeconfig of home's administrator for `server`, its URL. */
export async function issueGatewayConfiguration(
  dataDir: string,
  { names, server: url, ttlMs }: { readonly names: readonly string[]; readonly server: string; readonly ttlMs: number },
  nowMs: number,
): Promise<{ readonly configuration: GatewayConfiguration; readonly kubeconfig: string }> {
  const home = await homeOf(dataDir)
  try {
    const pkiDir = join(dataDir, 'pki')
    const { name, caCertificate } = home
    const trust = await readSharedTrust(pkiDir, nowMs)
    const configuration: GatewayConfiguration = {
      kind: 'GatewayConfiguration',
      home: { name, server: await reportedAddress(home), caCertificate },
      frontProxy: await issueFrontProxyCertificate(pkiDir, { name: gatewayProxyName, ttlMs }, nowMs),
      serving: await issueServingCertificate(pkiDir, { name: gatewayProxyName, names, ttlMs }, nowMs),
      pageTokenKey: createHmac('sha256', trust['token-key']).update('oarlock gateway page tokens').digest('base64url'),
    }
    // The same authority and the same token: only the address differs.
    const kubeconfig = readFileSync(join(dataDir, 'kubeconfig'), 'utf8').replace(/^(\s*server: ).*$/m, `$1${JSON.stringify(url)}`)
    return { configuration, kubeconfig }
  } finally {
    await home.client.close()
  }
}
