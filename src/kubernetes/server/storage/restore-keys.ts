import { dirname, resolve } from 'node:path'
import { type EncryptionConfig, encryptionConfigPath, newEncryptionConfig, readEncryptionConfig } from './encryption-config.ts'
import { createEncryptionConfig } from './reencryption.ts'
import { RowEncryption } from './row-encryption.ts'
import { ServerStartError } from './start-error.ts'

/** The keys that decrypt a backup, and those that encrypt what is restored from it. */
export class RestoreKeys {
  readonly #targetPath: string
  readonly #target: EncryptionConfig | undefined
  readonly #places: readonly string[]
  /** Decrypts with all keys that were found; undefined when there are none. */
  readonly source: RowEncryption | undefined

  /** @throws {ServerStartError} when a file that was found cannot be used, or the one that was passed does not exist. */
  constructor({ file, dataDir, encryptionConfig }: { file: string; dataDir: string; encryptionConfig?: string }) {
    this.#targetPath = encryptionConfigPath(resolve(dataDir))
    this.#target = readEncryptionConfig(this.#targetPath)
    const passed = encryptionConfig === undefined ? undefined : readEncryptionConfig(resolve(encryptionConfig))
    if (encryptionConfig !== undefined && !passed) throw new ServerStartError('DataMissing', `${encryptionConfig} does not exist`)
    const besidePath = encryptionConfigPath(dirname(resolve(file)))
    this.#places = [...(encryptionConfig === undefined ? [] : [encryptionConfig]), this.#targetPath, besidePath]
    const keys = [passed, this.#target, readEncryptionConfig(besidePath)].flatMap(config => config?.keys ?? [])
    const unique = keys.filter(({ name }, index) => keys.findIndex(key => key.name === name) === index)
    const [first, ...others] = unique
    this.source = first && new RowEncryption({ resources: [], keys: [first, ...others] })
  }

  /** Encrypts what is restored: with the keys of the data directory, which are created for objects that need them. */
  target(objects: ReadonlyMap<string, number>): RowEncryption | undefined {
    if (this.#target) return new RowEncryption(this.#target)
    return newEncryptionConfig().resources.some(resource => objects.has(resource))
      ? new RowEncryption(createEncryptionConfig(this.#targetPath))
      : undefined
  }

  missingError(file: string, locked: ReadonlyMap<string, number>): ServerStartError {
    const missing = [...locked].map(([keyName, objects]) => `${objects} with the key ${keyName}`).join(', ')
    return new ServerStartError(
      'EncryptionKeyMissing',
      `${file} has encrypted objects (${missing}), and the key is not in ${[...new Set(this.#places)].join(', ')}. Nothing was changed. ` +
        'Pass the keys/encryption-config.json of the server it is from with --encryption-provider-config, or skip these objects with --salvage',
    )
  }
}
