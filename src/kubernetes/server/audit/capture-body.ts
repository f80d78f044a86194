import { maxAuditedLength } from './audited-object.ts'
import type { AuditedReply } from './auditor.ts'

type Send = (data?: unknown, ...rest: unknown[]) => unknown

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
  reply.writeFramed = () => false
  return () => ({ text: textOf(Buffer.concat(chunks)), length })
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
