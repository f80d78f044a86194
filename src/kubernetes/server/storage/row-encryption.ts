import { RowCipher } from '../../util/row-cipher.ts'
import type { EncryptionConfig } from './encryption-config.ts'

/** Before the ciphertext, as in etcd: `oarlock:enc:aesgcm:v1:<name of the key>:`. */
const prefix = 'oarlock:enc:aesgcm:v1:'
/** An encrypted value begins with at most this many bytes that are not encrypted. */
export const maxHeaderBytes = 100

/** Encrypts the texts of the resources that the configuration names. An encrypted value is a BLOB bound to the key of its object. */
export class RowEncryption {
  readonly config: EncryptionConfig
  readonly #resources: ReadonlySet<string>
  readonly #secrets: ReadonlyMap<string, Buffer>
  /** Made when they are needed first. */
  readonly #ciphers = new Map<string, RowCipher>()
  readonly #header: Buffer

  constructor(config: EncryptionConfig) {
    this.config = config
    this.#resources = new Set(config.resources)
    this.#secrets = new Map(config.keys.map(({ name, secret }) => [name, secret]))
    this.#header = Buffer.from(`${prefix}${config.keys[0].name}:`)
  }

  /** Name of the key that a write of `resource` is encrypted with; undefined when it is stored in clear text. */
  keyFor(resource: string): string | undefined {
    return this.#resources.has(resource) ? this.config.keys[0].name : undefined
  }

  has(keyName: string): boolean {
    return this.#secrets.has(keyName)
  }

  encrypt(text: string, resource: string, key: string): Buffer {
    return Buffer.concat([this.#header, this.#cipher(this.config.keys[0].name).encrypt(Buffer.from(text), [`${resource} ${key}`])])
  }

  /** @throws {Error} if it was not encrypted with a known key for this object. */
  decrypt(stored: Uint8Array, resource: string, key: string): string {
    const keyName = keyNameOf(stored)
    if (keyName === undefined) throw new Error('it has no encryption key')
    return this.#cipher(keyName)
      .decrypt(stored.subarray(prefix.length + keyName.length + 1), [`${resource} ${key}`])
      .toString()
  }

  #cipher(keyName: string): RowCipher {
    let cipher = this.#ciphers.get(keyName)
    if (!cipher) {
      const secret = this.#secrets.get(keyName)
      if (!secret) throw new Error(`the encryption key ${keyName} is missing`)
      cipher = new RowCipher(secret, 'oarlock storage')
      this.#ciphers.set(keyName, cipher)
    }
    return cipher
  }
}

/** Name of the key that a stored value is encrypted with; undefined when it has no valid header. */
export function keyNameOf(stored: Uint8Array): string | undefined {
  const header = Buffer.from(stored.buffer, stored.byteOffset, Math.min(stored.byteLength, maxHeaderBytes)).toString('latin1')
  const end = header.indexOf(':', prefix.length)
  return header.startsWith(prefix) && end > 0 ? header.slice(prefix.length, end) : undefined
}
