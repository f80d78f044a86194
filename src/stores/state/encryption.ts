import { createHmac, timingSafeEqual } from 'node:crypto'
import { cipherKeyBytes, deriveKey, RowCipher, type RowId } from '../../kubernetes/util/row-cipher.ts'
import { StateStoreError } from './state-store-error.ts'

/** @throws {StateStoreError} `InvalidArgument` unless the key has 32 bytes. */
export function checkStateKey(key: Uint8Array): void {
  if (!(key instanceof Uint8Array) || key.byteLength !== cipherKeyBytes) {
    throw new StateStoreError('InvalidArgument', `key must be ${cipherKeyBytes} bytes, got ${key?.byteLength ?? typeof key}`)
  }
}

/**
 * Encrypts stored content: zstd, then {@link RowCipher}; the first element of a row is the stack's UID.
 * Compressed first: a Terraform state of 108 KB becomes 1.6 KB in 0.14 ms, and less is written and fsynced.
 */
export class Encryption {
  readonly #cipher: RowCipher
  readonly #digestKey: Buffer

  constructor(key: Uint8Array) {
    checkStateKey(key)
    this.#cipher = new RowCipher(key, 'oarlock state seal')
    this.#digestKey = derive(key, 'digest')
  }

  encrypt(plain: Uint8Array, row: RowId): Buffer {
    const { constants, zstdCompressSync } = process.getBuiltinModule('node:zlib')
    return this.#cipher.encrypt(zstdCompressSync(plain, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }), row)
  }

  /** @throws {StateStoreError} `Corrupt` if it was not encrypted with this key for this row. `size` is the decrypted size. */
  decrypt(encrypted: Uint8Array, row: RowId, size: number): Buffer {
    try {
      const compressed = this.#cipher.decrypt(encrypted, row)
      return process.getBuiltinModule('node:zlib').zstdDecompressSync(compressed, { maxOutputLength: Math.max(size, 1) })
    } catch (cause) {
      throw new StateStoreError('Corrupt', `stored content ${row.join('/')} is corrupt or was encrypted with another key`, { cause })
    }
  }

  /** A keyed digest for comparing contents. Without the key it reveals nothing about them. */
  digest(plain: Uint8Array): string {
    return createHmac('sha256', this.#digestKey).update(plain).digest('base64url')
  }
}

/** Secrets of Pulumi's states and configurations: each value is encrypted for one Stack. The format is that of {@link RowCipher}, which begins with its version. */
export class StackSecrets {
  readonly #cipher: RowCipher

  constructor(key: Uint8Array) {
    checkStateKey(key)
    this.#cipher = new RowCipher(key, 'oarlock state pulumi secret')
  }

  encrypt(stackUid: string, plain: Uint8Array): Buffer {
    return this.#cipher.encrypt(plain, [stackUid, 'pulumi-secret'])
  }

  /** @throws {StateStoreError} `DecryptionFailed`. `index` is the position of the value in its request. */
  decrypt(stackUid: string, encrypted: Uint8Array, index: number): Buffer {
    try {
      return this.#cipher.decrypt(encrypted, [stackUid, 'pulumi-secret'])
    } catch (cause) {
      const message = `value ${index} cannot be decrypted: it is corrupt, or was not encrypted for this Stack`
      throw new StateStoreError('DecryptionFailed', message, { cause })
    }
  }
}

/** Identifies a key, for a backup that does not contain it. It reveals nothing of the key. */
export const stateKeyId = (key: Uint8Array): string => `state-key-${derive(key, 'id').toString('hex', 0, 4)}`

/** Access tokens of stacks. They are derived from the store's key and a generation, so none is stored and all stay valid across restarts. */
export class StackTokens {
  readonly #key: Buffer

  constructor(key: Uint8Array) {
    checkStateKey(key)
    this.#key = derive(key, 'token')
  }

  /** `generation`: '' is the first one. */
  tokenOf(stackUid: string, generation: string): string {
    return createHmac('sha256', this.#key)
      .update(generation === '' ? stackUid : `${stackUid}/${generation}`)
      .digest('base64url')
  }

  /** Constant time; both sides are hashed first so that the length is not revealed either. */
  check(stackUid: string, token: string, generation: string): boolean {
    const hash = (text: string) => createHmac('sha256', this.#key).update(text).digest()
    return timingSafeEqual(hash(this.tokenOf(stackUid, generation)), hash(token))
  }
}

const derive = (key: Uint8Array, purpose: string) => deriveKey(key, `oarlock state ${purpose}`)
