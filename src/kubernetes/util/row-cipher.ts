// Not imported: node:crypto takes 3 MB in each thread, and a store without rows to encrypt does not need it.
const crypto = () => process.getBuiltinModule('node:crypto')

const scheme = 1
const nonceBytes = 12
const tagBytes = 16
const headerBytes = 1 + nonceBytes + tagBytes

export const cipherKeyBytes = 32

/** What identifies an encrypted row. The first element selects the key: see {@link RowCipher}. */
export type RowId = readonly [string, ...(string | number)[]]

/**
 * AES-256-GCM with a random nonce. The row is the additional authenticated data, so that a content cannot be exchanged for that of another
 * row. Each first element of a {@link RowId} has its own key, derived from the given one, which keeps random nonces far from their limit of
 * 2^32 per key.
 */
export class RowCipher {
  readonly #key: Buffer

  /** @param purpose separates the keys of different stores that are derived from the same `key`, which must have 32 bytes. */
  constructor(key: Uint8Array, purpose: string) {
    this.#key = deriveKey(key, purpose)
  }

  encrypt(plain: Uint8Array, row: RowId): Buffer {
    const { createCipheriv, randomBytes } = crypto()
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#rowKey(row), nonce)
    cipher.setAAD(aad(row))
    const body = cipher.update(plain)
    cipher.final()
    return Buffer.concat([Uint8Array.of(scheme), nonce, cipher.getAuthTag(), body])
  }

  /** @throws {Error} if it was not encrypted with this key for this row. */
  decrypt(encrypted: Uint8Array, row: RowId): Buffer {
    if (encrypted[0] !== scheme || encrypted.byteLength < headerBytes) throw new Error(`unknown scheme ${encrypted[0]}`)
    const decipher = crypto().createDecipheriv('aes-256-gcm', this.#rowKey(row), encrypted.subarray(1, 1 + nonceBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(aad(row))
    decipher.setAuthTag(encrypted.subarray(1 + nonceBytes, headerBytes))
    const plain = decipher.update(encrypted.subarray(headerBytes))
    decipher.final()
    return plain
  }

  #rowKey([first]: RowId): Buffer {
    return crypto().createHmac('sha256', this.#key).update(first).digest()
  }
}

/** A key of 32 bytes for one purpose (HKDF-SHA256). */
export const deriveKey = (key: Uint8Array, purpose: string): Buffer => Buffer.from(crypto().hkdfSync('sha256', key, '', purpose, 32))

const aad = (row: RowId) => Buffer.from(JSON.stringify(row))
