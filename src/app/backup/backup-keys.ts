import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { encryptionConfigPath, encryptionKeyNames } from '../../kubernetes/server/index.ts'
import { stateKeyId } from '../../stores/state/state-copy.ts'
import { AppStartError } from '../app-start-error.ts'

/** The keys of a data directory, as the texts of their files. */
export type BackupKeys = {
  readonly names: readonly string[]
  /** `keys/encryption-config.json`: decrypts Secrets. */
  readonly encryptionConfig?: string | undefined
  /** `keys/state.key`, hexadecimal: decrypts states and plans. */
  readonly stateKey?: string | undefined
}

export const minPassphraseChars = 12

/** OWASP's recommendation for scrypt: 128 MiB and about half a second for each guess of a passphrase. */
const cost = { N: 2 ** 17, r: 8, p: 1 }
const maxmem = 256 * 1024 * 1024
const purpose = 'oarlock backup keys'
const derive = promisify(scrypt) as (passphrase: string, salt: Uint8Array, length: number, options: object) => Promise<Buffer>

/** The keys in `directory`, the `keys/` of a data directory. */
export function readKeys(directory: string): BackupKeys {
  const encryptionConfig = readIfExists(encryptionConfigPath(join(directory, '..')))
  const stateKey = readIfExists(join(directory, 'state.key'))?.trim()
  const names = [
    ...(encryptionConfig === undefined ? [] : encryptionKeyNames(join(directory, '..'))),
    ...(stateKey === undefined ? [] : [stateKeyId(Buffer.from(stateKey, 'hex'))]),
  ]
  return { names, encryptionConfig, stateKey }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The content of the file in a backup: the keys, encrypted with AES-256-GCM and a key that scrypt derives from the passphrase. */
export async function encryptKeys({ encryptionConfig, stateKey }: BackupKeys, passphrase: string): Promise<Buffer> {
  const salt = randomBytes(16)
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, salt, 32, { ...cost, maxmem }), nonce)
  cipher.setAAD(Buffer.from(purpose))
  const encrypted = Buffer.concat([cipher.update(JSON.stringify({ encryptionConfig, stateKey })), cipher.final()])
  const text = (bytes: Buffer) => bytes.toString('base64')
  const file = { kdf: 'scrypt', ...cost, cipher: 'aes-256-gcm', salt: text(salt), nonce: text(nonce), tag: text(cipher.getAuthTag()) }
  return Buffer.from(JSON.stringify({ ...file, encrypted: text(encrypted) }))
}

/** @throws {AppStartError} for another passphrase. */
export async function decryptKeys(content: string, passphrase: string): Promise<Pick<BackupKeys, 'encryptionConfig' | 'stateKey'>> {
  const { kdf, N, r, p, salt, nonce, tag, encrypted } = JSON.parse(content) as Record<string, string> & typeof cost
  // Only what encryptKeys writes: other costs could take all memory.
  if (kdf !== 'scrypt' || N !== cost.N || r !== cost.r || p !== cost.p) throw new Error(`unknown key derivation ${kdf}`)
  const bytes = (text = '') => Buffer.from(text, 'base64')
  const key = await derive(passphrase, bytes(salt), 32, { ...cost, maxmem })
  const decipher = createDecipheriv('aes-256-gcm', key, bytes(nonce), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(purpose))
  decipher.setAuthTag(bytes(tag))
  try {
    return JSON.parse(Buffer.concat([decipher.update(bytes(encrypted)), decipher.final()]).toString('utf8'))
  } catch (cause) {
    throw new AppStartError(
      'DataDirectory',
      'the passphrase does not decrypt the keys in the backup',
      'check the file with --passphrase-file',
      cause,
    )
  }
}
