import { chmodSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeDirectories } from '../../util/make-directories.ts'
import { cipherKeyBytes } from '../../util/row-cipher.ts'
import { readIfExists, writeSecretFile } from './secret-file.ts'
import { ServerStartError } from './start-error.ts'

export type EncryptionKey = { readonly name: string; readonly secret: Buffer }

/** Which resources are encrypted, by table, and with which keys: the first encrypts, all of them decrypt. */
export type EncryptionConfig = {
  readonly resources: readonly string[]
  readonly keys: readonly [EncryptionKey, ...EncryptionKey[]]
}

/** Keys are kept after a rotation, because earlier backups need them. */
const maxKeys = 100
const defaultResources = ['secrets']

/** Next to the database and not in it: a copy of the database alone reveals nothing. */
export const encryptionConfigPath = (dataDir: string): string => join(dataDir, 'keys', 'encryption-config.json')

export const newEncryptionConfig = (): EncryptionConfig => ({ resources: defaultResources, keys: [newKey()] })

/** The newest key first; empty before the first start. Throws as {@link readEncryptionConfig}. */
export const encryptionKeyNames = (dataDir: string): string[] =>
  readEncryptionConfig(encryptionConfigPath(dataDir))?.keys.map(({ name }) => name) ?? []

/** A new key encrypts from now on; the others decrypt. */
export function withNewKey({ resources, keys }: EncryptionConfig): EncryptionConfig {
  if (keys.length >= maxKeys)
    throw new Error(`there are ${keys.length} encryption keys, ${maxKeys} is the maximum: remove those that no backup needs`)
  return { resources, keys: [newKey(), ...keys] }
}

export const withoutOldKeys = ({ resources, keys: [newest] }: EncryptionConfig): EncryptionConfig => ({ resources, keys: [newest] })

/**
 * The configuration in a file; undefined when the file does not exist.
 * @throws {ServerStartError} DataCorrupt
 */
export function readEncryptionConfig(path: string): EncryptionConfig | undefined {
  const text = readIfExists(path)
  if (text === undefined) return undefined
  if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  try {
    return parse(JSON.parse(text))
  } catch (cause) {
    // The text of a syntax error repeats a part of the file.
    const reason = cause instanceof SyntaxError ? 'it is not JSON' : (cause as Error).message
    throw new ServerStartError(
      'DataCorrupt',
      `${path} cannot be used: ${reason}. Restore it from a copy: encrypted objects cannot be read without it`,
    )
  }
}

/** Kubernetes' EncryptionConfiguration, as JSON, which is YAML too. On disk when it returns. */
export function writeEncryptionConfig(path: string, { resources, keys }: EncryptionConfig): void {
  makeDirectories(dirname(path), 0o700)
  const aesgcm = { keys: keys.map(({ name, secret }) => ({ name, secret: secret.toString('base64') })) }
  const config = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources, providers: [{ aesgcm }, { identity: {} }] }],
  }
  writeSecretFile(path, `${JSON.stringify(config, undefined, 2)}\n`)
}

// Not a number: a key that was lost and replaced would have the name of the new one.
function newKey(): EncryptionKey {
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  return { name: `key-${randomBytes(4).toString('hex')}`, secret: randomBytes(cipherKeyBytes) }
}

/** Only what {@link writeEncryptionConfig} writes, with other resources and keys: everything else would be silently ignored. */
function parse(file: unknown): EncryptionConfig {
  const { kind, resources: entries } = asObject(file, 'the file')
  if (kind !== 'EncryptionConfiguration') throw new Error('kind must be EncryptionConfiguration')
  const [entry] = asList(entries, 'resources', 1)
  const { resources, providers } = asObject(entry, 'resources[0]')
  const [first, identity] = asList(providers, 'providers', 2)
  if (identity !== undefined && !('identity' in asObject(identity, 'providers[1]'))) throw new Error('providers[1] must be identity')
  const { aesgcm } = asObject(first, 'providers[0]')
  if (aesgcm === undefined) throw new Error('providers[0] must be aesgcm')
  const keys = asList(asObject(aesgcm, 'aesgcm').keys, 'keys', maxKeys).map(parseKey)
  if (new Set(keys.map(key => key.name)).size < keys.length) throw new Error('two keys have the same name')
  return { resources: asList(resources, 'resources[0].resources', 1_000).map(parseResource), keys: [keys[0]!, ...keys.slice(1)] }
}

function parseResource(resource: unknown): string {
  if (typeof resource === 'string' && /^[a-z0-9-]+(\.[a-z0-9.-]+)?$/.test(resource)) return resource
  throw new Error('resources must be names such as "secrets" or "stacks.oarlock.dev", without wildcards')
}

function parseKey(key: unknown): EncryptionKey {
  const { name, secret } = asObject(key, 'a key')
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,63}$/.test(name)) throw new Error('a key has no valid name')
  const bytes = Buffer.from(typeof secret === 'string' ? secret : '', 'base64')
  if (bytes.length !== cipherKeyBytes) throw new Error(`the secret of key ${name} must be ${cipherKeyBytes} bytes in base64`)
  return { name, secret: bytes }
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Error(`${what} must be an object`)
}

function asList(value: unknown, what: string, maxItems: number): unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= maxItems) return value
  throw new Error(`${what} must be a list of 1 to ${maxItems} items`)
}
