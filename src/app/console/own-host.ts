import { isLoopback } from '../address.ts'

/**
 * Decides by the `Host` header. Any other name means DNS rebinding: a page of another site has made its own name resolve to our address.
 * @param names under which browsers reach the console besides loopback names, without ports.
 */
export function ownHost(names: readonly string[]): (header: string | undefined) => 'loopback' | 'tls' | undefined {
  const own = new Set(names.map(name => name.toLowerCase()))
  return header => {
    const host = (header ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
    if (isLoopback({ host })) return 'loopback'
    return own.has(host.toLowerCase()) ? 'tls' : undefined
  }
}
