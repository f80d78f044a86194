import { Pool } from 'undici'

/** The users of transcripts (`as:`) and their groups. */
export const groupsOf: Readonly<Record<string, string>> = {
  admin: 'system:masters',
  alice: 'devs',
  bob: 'devs',
  carol: 'ops',
  dave: 'ops',
}

/** A server against which transcripts are played. */
export type Target = {
  /** Such as `https://127.0.0.1:6443`. */
  url: string
  /** Tokens by the name that a transcript uses in `as:`; the default is `admin`. */
  tokens: Record<string, string>
  pool: Pool
  /** The labels that a new Namespace needs here; they are omitted from responses. Default: none. */
  namespaceLabels?(name: string): Record<string, string>
  /** PEM of the authority of its certificate, for a worker, whose heartbeat checks it. */
  caCertificate?: string
  close(): Promise<void>
}

export type Response = { code: number; headers: Record<string, string[]>; text: string }

export function createPool(url: string): Pool {
  // Responses are compared here; certificates are tested elsewhere.
  return new Pool(url, { connect: { rejectUnauthorized: false }, connections: 64, bodyTimeout: 0, headersTimeout: 8_000 })
}

export async function sendRequest(
  target: Target,
  request: { method: string; path: string; headers: Record<string, string>; body?: string },
): Promise<Response> {
  try {
    const response = await target.pool.request({ ...request, method: request.method as 'GET', body: request.body })
    return { code: response.statusCode, headers: headerLists(response.headers), text: await response.body.text() }
  } catch (error) {
    // No response is a result too, and a transcript may contain it.
    return { code: 0, headers: {}, text: `(no answer: ${error instanceof Error ? error.message : error})` }
  }
}

export function headerLists(headers: Record<string, string | string[] | undefined>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value === undefined ? [] : [value].flat()]))
}
