import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'

/** What is used of the options of `fetch`. Redirects are not followed. */
export type FetchOptions = {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: URLSearchParams | string | undefined
  readonly signal?: AbortSignal | undefined
}

const maxBytes = 4 * 1024 * 1024

/**
 * `fetch` for servers whose certificate has one of these authorities, in place of those of the system: Node's own takes none.
 * Rejects an answer that `Response` cannot have, is larger than 4 MiB, or ends early.
 * @param ca certificates as PEM.
 */
export const fetchWithCa =
  (ca: string) =>
  (url: string, { method, headers, body, signal }: FetchOptions): Promise<Response> =>
    new Promise((resolve, reject) => {
      const { host } = new URL(url)
      const sent = request(url, { method, headers, ca, ...(signal && { signal }) }, response => {
        readResponse(response, host).then(resolve, reject)
      })
      sent.on('error', reject)
      // Without a listener Node closes the connection and reports nothing.
      sent.on('upgrade', (_response, socket) => {
        socket.destroy()
        reject(new Error(`the answer of ${host} switches to another protocol, which was not requested`))
      })
      sent.end(body === undefined ? undefined : String(body))
    })

/** In an async function, so that what `Response` or `Headers` throws is a rejection: in a listener it would end the process. */
async function readResponse(response: IncomingMessage, host: string): Promise<Response> {
  const { statusCode: status = 0, headersDistinct } = response
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the answer of ${host} is larger than ${maxBytes} bytes`)
  }
  if (status < 200 || status > 599) throw new Error(`the answer of ${host} has status ${status}: only 200 to 599 are allowed`)
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) => values.map((value): [string, string] => [name, value]))
  // A Response of these statuses must have no body.
  return new Response([204, 205, 304].includes(status) ? null : Buffer.concat(chunks), { status, headers })
}
