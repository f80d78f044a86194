import { Pool } from 'undici'

/** Who asks in transcripts (`as:`), and the group of each. */
export const groupsOf: Readonly<Record<string, string>> = {
  admin: 'system:masters',
  alice: 'devs',
  bob: 'devs',
  carol: 'ops',
  dave: 'ops',
}

/** A server that transcripts are played against. */
export type Target = {
  /** Such as `https://127.0.0.1:6443`. */
  url: string
  /** Tokens by the name a transcript uses in `as:`; `admin` is the default. */
  tokens: Record<string, string>
  pool: Pool
  close(): Promise<void>
}

export type Answer = { code: number; headers: Record<string, string[]>; text: string }

export function makePool(url: string): Pool {
  // What is compared is what the servers say; who they are is for other tests.
  return new Pool(url, { connect: { rejectUnauthorized: false }, connections: 64, bodyTimeout: 0, headersTimeout: 8_000 })
}

export async function ask(
  target: Target,
  request: { method: string; path: string; headers: Record<string, string>; body?: string },
): Promise<Answer> {
  try {
    const response = await target.pool.request({ ...request, method: request.method as 'GET', body: request.body })
    return { code: response.statusCode, headers: headerLists(response.headers), text: await response.body.text() }
  } catch (error) {
    // To leave a request unanswered is an answer too, and a transcript may show it.
    return { code: 0, headers: {}, text: `(no answer: ${error instanceof Error ? error.message : error})` }
  }
}

export function headerLists(headers: Record<string, string | string[] | undefined>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value === undefined ? [] : [value].flat()]))
}
