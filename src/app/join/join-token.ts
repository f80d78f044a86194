import { createHash, randomBytes, randomInt, timingSafeEqual, X509Certificate } from 'node:crypto'
import { joinTokenPrefix } from './looks-like-join-token.ts'

/**
 * A join token: `oarlock1.<id>.<secret>.<pin>`. The id identifies it in lists and logs. The secret is 256 random bits, of which the server
 * stores only a hash. The pin is the SHA-256 of the public key of the server's certificate authority, with which a worker authenticates
 * the server. It combines kubeadm's bootstrap token and `--discovery-token-ca-cert-hash` in one string.
 */
export type JoinToken = { readonly id: string; readonly secret: string; readonly pin: string }

const pattern = /^oarlock1\.([a-z0-9]{10})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/
const idCharacters = 'abcdefghijklmnopqrstuvwxyz0123456789'

export function parseJoinToken(text: string): JoinToken | undefined {
  const [, id, secret, pin] = pattern.exec(text.trim()) ?? []
  return id !== undefined && secret !== undefined && pin !== undefined ? { id, secret, pin } : undefined
}

export const formatJoinToken = ({ id, secret, pin }: JoinToken): string => `${joinTokenPrefix}.${id}.${secret}.${pin}`

export function makeJoinToken(caCertificate: string): JoinToken {
  const id = Array.from({ length: 10 }, () => idCharacters[randomInt(idCharacters.length)]).join('')
  return { id, secret: randomBytes(32).toString('base64url'), pin: publicKeyPin(caCertificate) }
}

/** The pin of the first certificate in a PEM text. @throws {Error} if there is none. */
export function publicKeyPin(caCertificate: string): string {
  const key = new X509Certificate(caCertificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64url')
}

/** The stored hash of a secret. It needs no salt and no stretching: 256 random bits cannot be guessed. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export function verifySecret(secret: string, hash: string): boolean {
  const actual = Buffer.from(hashSecret(secret))
  const stored = Buffer.from(hash)
  return actual.length === stored.length && timingSafeEqual(actual, stored)
}
