import { StatusError } from '../../kubernetes/object/index.ts'

/** What the bookmarks of a kind look like: from one that a partition has sent. */
export function bookmarkForm(line: Uint8Array): string {
  return Buffer.from(line.buffer, line.byteOffset, line.byteLength)
    .toString('latin1')
    .replace(/,"annotations":\{[^}]*\}/, '')
}

/** The bookmark of a version. */
export function bookmarkLine(form: string, version: number, isInitialEnd = false): Buffer {
  const text = form.replaceAll(/"resourceVersion":"\d+"/g, `"resourceVersion":"${version}"`)
  if (!isInitialEnd) return Buffer.from(text, 'latin1')
  const at = text.lastIndexOf(`"${version}"`) + `"${version}"`.length
  return Buffer.from(`${text.slice(0, at)},"annotations":{"k8s.io/initial-events-end":"true"}${text.slice(at)}`, 'latin1')
}

/** The event that ends a watch which cannot be continued: its client lists again. */
export function expiredLine(message: string): Buffer {
  return Buffer.from(`${JSON.stringify({ type: 'ERROR', object: new StatusError('Expired', message).toStatus() })}\n`)
}

/** Of a collection that is in other partitions now. */
export const movedLine = expiredLine('the partitions have changed: list again')
