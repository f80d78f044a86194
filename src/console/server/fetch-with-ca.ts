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
 * @param ca certificates as PEM.
 */
export const fetchWithCa =
  (ca: string) =>
  (url: string, { method, headers, body, signal }: FetchOptions): Promise<Response> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { method, headers, ca, ...(signal && { signal }) }, response => {
        const chunks: Buffer[] = []
        let bytes = 0
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          bytes += chunk.length
          if (bytes > maxBytes) response.destroy(new Error(`the answer of ${new URL(url).host} is larger than ${maxBytes} bytes`))
        })
        response.on('error', reject)
        response.on('end', () => {
          const pairs = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
            values.map((value): [string, string] => [name, value]),
          )
          const { statusCode = 0 } = response
          // A Response of these statuses must have no body.
          const content = [204, 205, 304].includes(statusCode) ? null : Buffer.concat(chunks)
          resolve(new Response(content, { status: statusCode, headers: pairs }))
        })
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : String(body))
    })
