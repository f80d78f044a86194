import { hash } from 'node:crypto'

/** What a document is known by to caches: SHA-512 in capitals, as Kubernetes has it. */
export function etagOf(document: string): string {
  return hash('sha512', document).toUpperCase()
}
