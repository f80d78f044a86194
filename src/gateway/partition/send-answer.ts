import { ConnectionError } from '../../kubernetes/client/index.ts'
import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type ClientResponse, sendBody } from '../request/index.ts'
import { WholeBody } from './short-request.ts'

/** Of one connection, or of what the gateway adds. */
const ownHeaders: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'x-oarlock-version'])

/** Sends the response of a partition. */
export async function sendAnswer({ status, headers, body }: TransportStreamResponse, response: ClientResponse): Promise<void> {
  const sent: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || ownHeaders.has(name)) continue
    // Without it, under exactly this name, a response is sent in chunks.
    if (name !== 'content-length') sent[name] = value
    else if (!isMerged(body)) sent['Content-Length'] = value
  }
  response.writeHead(status, sent)
  if (body instanceof WholeBody) {
    // Text goes out with the head, in one piece. ASCII, which has a byte for each character, leaves with what else the connection sends in this tick.
    response.end(body.text, Number(headers['content-length']) === body.text.length ? 'latin1' : 'utf8')
    return
  }
  response.flushHeaders()
  await sendBody(body, response)
}

/** A body that was joined from several has another length. */
const isMerged = (body: AsyncIterable<Uint8Array>) => !('isEnded' in body)

/** What the gateway asks for itself, such as which Tenants a user may use, fails so when home or a partition ends. */
function unreachable(error: unknown): StatusError | undefined {
  if (!(error instanceof ConnectionError)) return undefined
  return new StatusError('ServiceUnavailable', `home or a partition does not answer: ${error.message}`, {
    ...{ cause: error, details: { retryAfterSeconds: 1 } },
  })
}

/** Sends an error; `onInternal` gets what the client must not see. */
export function sendStatus(response: ClientResponse, error: unknown, onInternal: (error: unknown) => void): void {
  const known =
    error instanceof StatusError ? error : (unreachable(error) ?? new StatusError('InternalError', 'the gateway failed: see its log'))
  if (known.code === 500 && known !== error) onInternal(error)
  const body = JSON.stringify(known.toStatus())
  const retryAfter = known.details?.retryAfterSeconds
  if (retryAfter !== undefined) response.setHeader('Retry-After', retryAfter)
  response.writeHead(known.code, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}
