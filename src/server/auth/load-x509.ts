import { webcrypto } from 'node:crypto'

type X509 = typeof import('@peculiar/x509')

let loading: Promise<X509> | undefined

/**
 * Loads `@peculiar/x509` when a certificate must be made, which is on the first start and once a year: it is far
 * larger than what a running server needs.
 */
export function loadX509(): Promise<X509> {
  loading ??= (async () => {
    provideMetadata()
    const x509 = await import('@peculiar/x509')
    x509.cryptoProvider.set(webcrypto as unknown as Crypto)
    return x509
  })()
  return loading
}

type Metadata = {
  getMetadata?(key: unknown, target: object): unknown
  getOwnMetadata?(key: unknown, target: object): unknown
  defineMetadata?(key: unknown, value: unknown, target: object): void
}

// The library registers its classes with tsyringe, which refuses to load without the `reflect-metadata` polyfill.
// It needs no more of it than to remember a value for a class.
function provideMetadata(): void {
  const reflect = Reflect as Metadata
  if (reflect.getMetadata) return
  const byTarget = new WeakMap<object, Map<unknown, unknown>>()
  reflect.defineMetadata = (key, value, target) => {
    const known = byTarget.get(target) ?? new Map<unknown, unknown>()
    byTarget.set(target, known.set(key, value))
  }
  reflect.getOwnMetadata = (key, target) => byTarget.get(target)?.get(key)
  reflect.getMetadata = (key, target) => {
    for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
      const found = byTarget.get(at)?.get(key)
      if (found !== undefined) return found
    }
    return undefined
  }
}
