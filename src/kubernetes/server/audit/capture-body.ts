import { maxAuditedLength } from './audited-object.ts'
import type { AuditDetails, AuditedReply } from './auditor.ts'

type Send = (data?: unknown, ...rest: unknown[]) => unknown

// Named: V8 allocates a function literal that is assigned to a property in the old generation, where it keeps its request alive.
const isNotFramed = () => false

/** Keeps a copy of what is sent, if it is not longer than {@link maxAuditedLength}. The result returns it; `length` is that of all. */
export function captureBody(reply: AuditedReply): () => { text: string; length: number } {
  const chunks: Buffer[] = []
  let length = 0
  const capture =
    (send: Send): Send =>
    (data, ...rest) => {
      if (typeof data === 'string' || data instanceof Uint8Array) {
        length += data.length
        if (length <= maxAuditedLength) chunks.push(Buffer.from(data as Uint8Array))
        else chunks.length = 0
      }
      return send(data, ...rest)
    }
  reply.write = capture((reply.write as Send).bind(reply))
  reply.end = capture((reply.end as Send).bind(reply))
  // Chunks of long lists are sent by write then, without the frame.
  reply.writeFramed = isNotFramed
  return () => ({ text: textOf(Buffer.concat(chunks)), length })
}

/** Records why a path that is no resource responds 403: its handler sends the response itself. */
export function captureDenial(reply: AuditedReply, details: AuditDetails): void {
  const end = (reply.end as Send).bind(reply)
  // Named for the same reason as isNotFramed.
  const endWithDenial = (data?: unknown, ...rest: unknown[]) => {
    if (reply.statusCode === 403 && data instanceof Uint8Array) details.denial ??= messageIn(Buffer.from(data).toString())
    return end(data, ...rest)
  }
  reply.end = endWithDenial
}

/** Of a Status, or of an error of the stores. */
function messageIn(text: string): string {
  try {
    const { message, error } = JSON.parse(text) as { message?: unknown; error?: { message?: unknown } }
    return String(message ?? error?.message ?? text)
  } catch {
    return text
  }
}

function textOf(body: Buffer): string {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  if (!isGzip) return body.toString()
  try {
    return process.getBuiltinModule('node:zlib').gunzipSync(body, { maxOutputLength: maxAuditedLength }).toString()
  } catch {
    return 'gzip'
  }
}
