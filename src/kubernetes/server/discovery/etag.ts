import { hash } from 'node:crypto'

/** The ETag of a document: its SHA-512 in upper case, as in Kubernetes. */
export function etagOf(document: string): string {
  return hash('sha512', document).toUpperCase()
}
