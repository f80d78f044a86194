import { createCipheriv, pbkdf2, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { usageError } from '../cli-error.ts'

/** As in `sdk/go/common/resource/config/crypt.go` of github.com/pulumi/pulumi. */
const iterations = 1_000_000
const keyBytes = 32
const saltBytes = 8
const nonceBytes = 12

/** Pulumi's secrets provider `passphrase` with a new key. */
export type PassphraseSecrets = {
  /** `secrets_providers` of a state. */
  readonly provider: { readonly type: 'passphrase'; readonly state: { readonly salt: string } }
  encrypt(plaintext: string): string
}

/** The key takes about a second: it is as slow to guess as those of the CLI. */
export async function createPassphraseSecrets(passphrase: string): Promise<PassphraseSecrets> {
  const salt = randomBytes(saltBytes)
  const key = await promisify(pbkdf2)(passphrase, salt, iterations, keyBytes, 'sha256')
  const encrypt = (plaintext: string): string => {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `v1:${nonce.toString('base64')}:${sealed.toString('base64')}`
  }
  // By the text the CLI recognizes a wrong passphrase.
  return { provider: { type: 'passphrase', state: { salt: `v1:${salt.toString('base64')}:${encrypt('pulumi')}` } }, encrypt }
}

/** The passphrase that the CLI uses. @throws {CliError} if there is none. */
export function readPassphrase(env: NodeJS.ProcessEnv): string {
  const { PULUMI_CONFIG_PASSPHRASE: passphrase, PULUMI_CONFIG_PASSPHRASE_FILE: file } = env
  if (passphrase) return passphrase
  if (!file)
    throw usageError('there is no passphrase', 'set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE, as for the Pulumi CLI')
  try {
    // As the CLI reads it.
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`, 'it is in PULUMI_CONFIG_PASSPHRASE_FILE')
  }
}
