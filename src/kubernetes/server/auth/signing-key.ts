import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreate, ServerStartError } from '../storage/index.ts'

// JWS requires r and s concatenated (RFC 7518, section 3.4), not OpenSSL's default ASN.1.
const encoding = 'ieee-p1363' as const

/**
 * The key that signs the tokens of service accounts: ES256, kept in `pki/service-account.key`. The public key is published, so that other
 * services can verify a token without a request to this server.
 */
export class SigningKey {
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  /** The key ID in the header of a token: the hash of the public key, as in kube-apiserver. */
  readonly keyId: string

  /** @throws {ServerStartError} DataCorrupt, if the file is damaged. */
  constructor(pkiDir: string) {
    const path = join(pkiDir, 'service-account.key')
    const pem = readOrCreate(path, () => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    })
    try {
      this.#privateKey = createPrivateKey(pem)
    } catch (cause) {
      const remedy = 'restore it from a backup, or remove it: then the tokens of service accounts become invalid'
      throw new ServerStartError('DataCorrupt', `${path} is not a PEM key: ${remedy}`, { cause })
    }
    this.#publicKey = createPublicKey(pem)
    this.keyId = createHash('sha256')
      .update(this.#publicKey.export({ type: 'spki', format: 'der' }))
      .digest('base64url')
  }

  /** Signs a JSON Web Token with these claims. */
  sign(claims: object): string {
    const signed = `${encode({ alg: 'ES256', kid: this.keyId })}.${encode(claims)}`
    const signature = sign('sha256', Buffer.from(signed), { key: this.#privateKey, dsaEncoding: encoding })
    return `${signed}.${signature.toString('base64url')}`
  }

  /** The claims of a token that this key signed, or undefined. The caller checks validity periods. */
  read(token: string): Record<string, unknown> | undefined {
    const [header, claims, signature, ...more] = token.split('.')
    if (!header || !claims || !signature || more.length > 0) return undefined
    const { alg, kid } = decode(header) ?? {}
    if (alg !== 'ES256' || kid !== this.keyId) return undefined
    const isOurs = verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      { key: this.#publicKey, dsaEncoding: encoding },
      Buffer.from(signature, 'base64url'),
    )
    return isOurs ? decode(claims) : undefined
  }

  /** The public key as a JSON Web Key Set (RFC 7517). */
  get keySet(): object {
    return { keys: [{ use: 'sig', kty: 'EC', kid: this.keyId, alg: 'ES256', ...this.#publicCoordinates() }] }
  }

  #publicCoordinates(): object {
    const { crv, x, y } = this.#publicKey.export({ format: 'jwk' })
    return { crv, x, y }
  }
}

export function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Decodes one part of a token; undefined if it is not an object. */
export function decode(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
