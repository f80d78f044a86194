import { readFileSync } from 'node:fs'
import { createClient } from '../../kubernetes/client/index.ts'
import { type Endpoint, readEndpoint } from '../discovery/index.ts'

/** The stores may not have started yet: another worker may find them. */
export class StoresNotFoundError extends Error {
  override readonly name = 'StoresNotFoundError'
}

/** The kubelet replaces a token after four fifths of its lifetime, of at least ten minutes. */
const readEveryMs = 30_000

/** The token of a Pod, which is read from its file again: the kubelet replaces it. */
export class PodToken {
  readonly #file: string
  readonly #nowMs: () => number
  #token: string
  #readAtMs: number

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(file: string, token: string, nowMs: () => number = () => performance.now()) {
    this.#file = file
    this.#token = token
    this.#nowMs = nowMs
    this.#readAtMs = nowMs()
  }

  readonly get = (): string => {
    if (this.#nowMs() - this.#readAtMs < readEveryMs) return this.#token
    this.#readAtMs = this.#nowMs()
    try {
      this.#token = readFileSync(this.#file, 'utf8').trim() || this.#token
    } catch {
      // The previous one is valid for some time: the API server decides.
    }
    return this.#token
  }
}

/** Where the stores are. @throws {StoresNotFoundError} if they have not published their address. */
export async function findStores({
  server,
  caCertificate,
  token,
}: {
  server: string
  caCertificate: string | undefined
  token: string
}): Promise<Endpoint> {
  const client = await createClient({ cluster: { server, caCertificate, token }, userAgent: 'oarlock-worker', connections: 1 })
  try {
    const stores = await readEndpoint(client, 'stores')
    if (stores) return stores
  } finally {
    await client.close()
  }
  throw new StoresNotFoundError('no stores have published their address: start "oarlock stores"')
}
