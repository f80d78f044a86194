import { join } from 'node:path'
import { type Client, clusterCaCertificate, createClient } from '../../kubernetes/client/index.ts'
import { AppStartError } from '../app-start-error.ts'
import type { HomeAddress } from './configuration.ts'
import { homeNumber, readPartitionIdentity } from './identity.ts'

/** Where home is, from its data directory. @throws {AppStartError} if the directory is not that of a home partition that was started. */
export async function homeOf(dataDir: string): Promise<HomeAddress & { readonly client: Client }> {
  const identity = readPartitionIdentity(dataDir)
  if (identity?.number !== homeNumber)
    throw new AppStartError(
      'DataDirectory',
      `${dataDir} is not the data directory of the home partition`,
      'start it first: "oarlock serve --home"',
    )
  const kubeconfig = join(dataDir, 'kubeconfig')
  const client = await createClient({ kubeconfig })
  try {
    await client.request({ method: 'GET', path: '/version' })
  } catch (cause) {
    await client.close()
    const hint = `start it: "oarlock serve --home --data ${dataDir}"`
    throw new AppStartError('Configuration', `home does not answer at ${client.server}: ${(cause as Error).message}`, hint, cause)
  }
  const caCertificate = (await clusterCaCertificate({ kubeconfig })) ?? ''
  return { name: identity.name, server: client.server, caCertificate, client }
}
