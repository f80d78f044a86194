import { createHash, randomBytes, randomInt, timingSafeEqual, X509Certificate } from 'node:crypto'

/**
 * A join token: `oarlock1.<id>.<secret>.<pin>`. The id names it where people see it; the secret is 256 random bits of which the server
 * keeps only a hash; the pin is the SHA-256 of the public key of the server's certificate authority, so that a worker trusts the
 * right server from its first byte on. As with kubeadm's bootstrap tokens and `--discovery-token-ca-cert-hash`, in one text.
 */
export type JoinToken = { readonly id: string; readonly secret: string; readonly pin: string }

const prefix = 'oarlock1'
const pattern = /^oarlock1\.([a-z0-9]{10})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/
const idLetters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Whether a text is meant to be a join token, so that one that was cut short is not taken for another kind of credential. */
export const looksLikeJoinToken = (text: string): boolean => text.startsWith(`${prefix}.`)

export function parseJoinToken(text: string): JoinToken | undefined {
  const [, id, secret, pin] = pattern.exec(text.trim()) ?? []
  return id !== undefined && secret !== undefined && pin !== undefined ? { id, secret, pin } : undefined
}

export const formatJoinToken = ({ id, secret, pin }: JoinToken): string => `${prefix}.${id}.${secret}.${pin}`

export function makeJoinToken(caCertificate: string): JoinToken {
  const id = Array.from({ length: 10 }, () => idLetters[randomInt(idLetters.length)]).join('')
  return { id, secret: randomBytes(32).toString('base64url'), pin: publicKeyPin(caCertificate) }
}

/** Of the first certificate in a PEM text. @throws {Error} when it is none. */
export function publicKeyPin(caCertificate: string): string {
  const key = new X509Certificate(caCertificate).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('base64url')
}

/** What is kept of a secret: no salt and no stretching, as there is nothing to guess in 256 random bits. */
export const hashSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export function verifySecret(secret: string, hash: string): boolean {
  const given = Buffer.from(hashSecret(secret))
  const kept = Buffer.from(hash)
  return given.length === kept.length && timingSafeEqual(given, kept)
}
