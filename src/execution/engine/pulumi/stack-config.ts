import { join } from 'node:path'
import { isJsonObject, type Json, setOwn } from '../../../kubernetes/object/index.ts'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import type { PulumiProject } from './project-file.ts'

const maxConfigFileBytes = 4 * 1024 * 1024

/** Encrypts values for the stack; the CLI decrypts them through the backend. */
export type EncryptValues = (plaintexts: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>

/**
 * Writes the configuration of the stack, and returns the path for `--config-file`. It has what the file of the source has
 * (`Pulumi.<stack>.yaml`), with the Stack's variables in place of values of the same name. A secret is stored encrypted, so that it is in no file
 * and in no argument in clear text (invariant 9).
 *
 * A file of the source whose secrets belong to another provider (passphrase, a cloud's keys) stays with that provider, which then has to encrypt
 * the Stack's secrets too.
 * @throws {EngineError} InvalidConfiguration if the file of the source cannot be parsed, or has another secrets provider while a variable is secret.
 */
export async function writeStackConfig(
  context: EngineContext,
  { project, stack, encrypt }: { project: PulumiProject; stack: string; encrypt: EncryptValues | undefined },
): Promise<string> {
  const { stringify } = await import('yaml')
  const found = await readStackConfig(context, project, stack)
  const config = { ...(isJsonObject(found.config) ? found.config : {}) } as Record<string, Json>
  const secretNames = context.sensitiveNames.filter(name => Object.hasOwn(context.variables, name))
  const foreign = ['secretsprovider', 'encryptionsalt', 'encryptedkey'].find(field => found[field] !== undefined)
  if (secretNames.length > 0 && (foreign !== undefined || encrypt === undefined)) {
    const why = foreign ? `Pulumi.${stack}.yaml has ${foreign}, so its secrets provider encrypts all secrets` : 'spec.state is External'
    throw new EngineError(
      'InvalidConfiguration',
      `the secret variables ${secretNames.join(', ')} cannot be configuration: ${why}; pass them as environment variables (spec.env), or remove ${foreign ?? 'state: External'}`,
      { retryable: false },
    )
  }
  const texts = secretNames.map(name => Buffer.from(textOf(context.variables[name])))
  const encrypted = texts.length > 0 && encrypt ? await encrypt(texts) : []
  for (const [name, value] of Object.entries(context.variables)) {
    const index = secretNames.indexOf(name)
    const sealed = encrypted[index]
    const key = name.includes(':') ? name : `${project.name}:${name}`
    setOwn(config, key, sealed ? { secure: Buffer.from(sealed).toString('base64') } : value)
  }
  const path = join(context.inputs, `Pulumi.${stack}.yaml`)
  await context.files.write(path, stringify({ ...found, config }), 0o644)
  return path
}

/** What `requireSecretObject` of the SDKs expects of a structured secret: its JSON text. */
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : JSON.stringify(value))

async function readStackConfig(context: EngineContext, project: PulumiProject, stack: string): Promise<Record<string, Json>> {
  const { parse } = await import('yaml')
  for (const extension of ['yaml', 'yml', 'json']) {
    const name = join(project.stackConfigDirectory, `Pulumi.${stack}.${extension}`)
    const path = join(context.directory, name)
    try {
      if (!path.startsWith(`${context.sourceRoot}/`)) throw new Error('it is outside the source')
      const text = await context.files.readText(path, { maxBytes: maxConfigFileBytes })
      if (text === undefined) continue
      const document: unknown = parse(text, { maxAliasCount: 100 }) ?? {}
      if (!isJsonObject(document)) throw new Error('it must be an object')
      return document as Record<string, Json>
    } catch (error) {
      const problem = error instanceof UnexpectedFileError ? error.problem : (error as Error).message.split('\n')[0]
      throw new EngineError('InvalidConfiguration', `${name}: ${problem}`, { retryable: false })
    }
  }
  return {}
}
