import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** Where a partition is reached, and as whom. */
export type PartitionAddress = {
  /** `https://host:port`. */
  readonly server: string
  /** PEM of the authority of the server's certificate. */
  readonly caCertificate: string
  /** PEM: what this gateway is to the partition, see `front-proxy.ts` of the server. */
  readonly certificate: string
  readonly key: string
}

/** A connection on which the partition has switched protocols, or its answer that it does not. */
export type UpgradeAnswer =
  | { readonly status: 101; readonly headers: IncomingMessage['headers']; readonly socket: Duplex; readonly head: Buffer }
  | { readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: IncomingMessage }

const answerTimeoutMs = 60_000

/**
 * Asks a partition to switch protocols, on a connection of its own. The caller closes it.
 * @throws {Error} if the partition cannot be reached, or does not answer within 60 s.
 */
export async function requestUpgrade(
  { server, caCertificate, certificate, key }: PartitionAddress,
  {
    method,
    path,
    headers,
    signal,
  }: { method: string; path: string; headers: Readonly<Record<string, string | string[]>>; signal: AbortSignal },
): Promise<UpgradeAnswer> {
  const { request } = process.getBuiltinModule('node:https')
  const { protocol, hostname, port, pathname } = new URL(server)
  return await new Promise((resolve, reject) => {
    const sent = request({
      ...{ protocol, port, method, headers, signal, ca: caCertificate, cert: certificate, key, minVersion: 'TLSv1.2' },
      hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
      path: pathname.replace(/\/$/, '') + path,
      agent: false,
    })
    const timer = setTimeout(() => sent.destroy(new Error(`no response within ${answerTimeoutMs / 1_000} s`)), answerTimeoutMs)
    for (const event of ['response', 'upgrade', 'close']) sent.once(event, () => clearTimeout(timer))
    sent.on('error', reject)
    sent.on('upgrade', ({ headers: answered }, socket, head) => resolve({ status: 101, headers: answered, socket, head }))
    sent.on('response', body => resolve({ status: body.statusCode ?? 502, headers: body.headers, body }))
    sent.end()
  })
}
