import { webcrypto } from 'node:crypto'

type X509 = typeof import('@peculiar/x509')

let loading: Promise<X509> | undefined

/**
 * Loads `@peculiar/x509` when a certificate must be made, which is on the first start and once a year: it is far
 * larger than what a running server needs.
 */
export function loadX509(): Promise<X509> {
  loading ??= (async () => {
    // The library registers its classes with tsyringe, which refuses to load without this polyfill.
    await import('reflect-metadata')
    const x509 = await import('@peculiar/x509')
    x509.cryptoProvider.set(webcrypto as unknown as Crypto)
    return x509
  })()
  return loading
}
