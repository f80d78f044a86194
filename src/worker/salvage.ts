import type { SalvageTarget } from './guard-protocol.ts'

/**
 * Sends a state file to the store with the Run's epoch. `settled`: accepted, or refused in a way that will not change.
 * Plain node:http(s): this runs in the guard, which has to stay small.
 */
export async function upload(target: SalvageTarget, bytes: Buffer): Promise<'settled' | 'again'> {
  const url = new URL(target.url)
  const { request } = url.protocol === 'http:' ? await import('node:http') : await import('node:https')
  return new Promise(resolve => {
    const headers = {
      authorization: `Bearer ${target.token}`,
      'content-type': 'application/json',
      'content-length': bytes.length,
      'oarlock-epoch': String(target.epoch),
    }
    const outgoing = request(url, { method: 'PUT', headers, ca: target.caCertificate, timeout: 10_000 }, response => {
      response.resume()
      const status = response.statusCode ?? 500
      const mayChange = status >= 500 || status === 408 || status === 429
      response.on('end', () => resolve(mayChange ? 'again' : 'settled'))
      response.on('error', () => resolve('again'))
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
    outgoing.on('error', () => resolve('again'))
    outgoing.end(bytes)
  })
}
