import { discovery } from '../app/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/**
 * Where workers join, and the command that serves it: the join service that has published its address, or `oarlock up`, which serves /join itself.
 * @throws {CliError} if there is neither.
 */
export async function joinEndpoint(client: Client): Promise<{ url: string; caCertificate: string; command: string }> {
  const join = await (await discovery()).readEndpoint(client, 'join')
  if (join?.caCertificate !== undefined) return { url: join.url, caCertificate: join.caCertificate, command: 'oarlock join-service' }
  try {
    const caCertificate = await (await client.request({ method: 'GET', path: '/join/ca' })).text()
    return { url: client.server, caCertificate, command: 'oarlock up' }
  } catch (error) {
    if (!isReason(error, 'NotFound', 'Forbidden')) throw error
    const hint = `start "oarlock join-service --kubeconfig FILE --data DIR" with a kubeconfig of ${client.server}, where it publishes its address`
    throw new CliError(`no join service is running and ${client.server} is not an "oarlock up" server`, {
      exitCode: exitCodes.notFound,
      hint,
      cause: error,
    })
  }
}
