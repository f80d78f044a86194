import { systemNamespace } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { httpsUrlError } from '../../kubernetes/util/index.ts'
import { type EndpointRole, endpointName, findEntry } from './endpoint-entry.ts'

/** `caCertificate` is PEM; undefined for the certificate authorities of the system. */
export type Endpoint = { readonly url: string; readonly caCertificate: string | undefined }

/**
 * The published address of a role; undefined if none is published, or the user cannot read it.
 * @throws {Error} if the address must not get credentials.
 */
export async function readEndpoint(client: Client, role: EndpointRole): Promise<Endpoint | undefined> {
  let entry: Readonly<Record<string, string>> | undefined
  try {
    entry = (await findEntry(client, role))?.data
  } catch (error) {
    if (!isReason(error, 'Forbidden')) throw error
  }
  if (entry?.url === undefined) return undefined
  const problem = httpsUrlError(entry.url)
  if (problem !== undefined) throw new Error(`url in ConfigMap ${systemNamespace}/${endpointName(role)} ${problem}`)
  return { url: entry.url, caCertificate: entry['ca.crt'] }
}
