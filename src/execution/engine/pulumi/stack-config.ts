import { join } from 'node:path'
import type { Document, Node } from 'yaml'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
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
 * @throws {EngineError} InvalidConfiguration if the file of the source cannot be parsed, has an ESC environment for Managed state, or has another
 * secrets provider while a variable is secret.
 */
export async function writeStackConfig(
  context: EngineContext,
  { project, stack, encrypt }: { project: PulumiProject; stack: string; encrypt: EncryptValues | undefined },
): Promise<string> {
  const found = await readStackConfig(context, project, stack)
  if (encrypt) rejectEnvironment(found)
  const secretNames = context.sensitiveNames.filter(name => Object.hasOwn(context.variables, name))
  const foreign = ['secretsprovider', 'encryptionsalt', 'encryptedkey'].find(field => found.content[field] !== undefined)
  if (secretNames.length > 0 && (foreign !== undefined || encrypt === undefined)) {
    const why = foreign ? `${found.name} has ${foreign}, so its secrets provider encrypts all secrets` : 'spec.state is External'
    throw new EngineError(
      'InvalidConfiguration',
      `the secret variables ${secretNames.join(', ')} cannot be configuration: ${why}; pass them as environment variables (spec.env), or remove ${foreign ?? 'state: External'}`,
      { retryable: false },
    )
  }
  const entries = Object.entries(context.variables).map(([name, value]) => {
    const key = name.includes(':') ? name : `${project.name}:${name}`
    const isSecret = secretNames.includes(name)
    return { key, secret: isSecret ? splitSecret(value, project.structuredConfig.has(key)) : undefined, value }
  })
  const secrets = entries.flatMap(({ secret }) => secret?.texts ?? [])
  const encrypted = secrets.length > 0 && encrypt ? await encrypt(secrets.map(text => Buffer.from(text))) : []
  let next = 0
  const nextSecure = (): Json => ({ secure: Buffer.from(encrypted[next++] ?? []).toString('base64') })
  const config = entries.map(({ key, secret, value }) => [key, secret ? secret.join(nextSecure) : value] as const)
  const path = join(context.inputs, `Pulumi.${stack}.yaml`)
  await context.files.write(path, await found.withConfig(config), 0o644)
  return path
}

/**
 * The texts of a secret that are encrypted. A structured value is one of them, its JSON text, which `requireSecretObject` of the SDKs parses. Only
 * where the project declares a list or an object (`isDeclared`) does the CLI require its structure: then each value in it is a secret, as with
 * `pulumi config set --secret --path`, and numbers become texts.
 */
function splitSecret(value: Json, isDeclared: boolean): { texts: string[]; join(next: () => Json): Json } {
  const isStructured = typeof value === 'object' && value !== null
  if (!isStructured || !isDeclared) return { texts: [typeof value === 'string' ? value : JSON.stringify(value)], join: next => next() }
  const parts = Object.entries(value).map(([key, each]) => [key, splitSecret(each as Json, true)] as const)
  const texts = parts.flatMap(([, part]) => part.texts)
  const join = (next: () => Json): Json =>
    Array.isArray(value) ? parts.map(([, part]) => part.join(next)) : Object.fromEntries(parts.map(([key, part]) => [key, part.join(next)]))
  return { texts, join }
}

type StackConfigFile = {
  /** Relative to the program. */
  readonly name: string
  readonly content: Readonly<Record<string, unknown>>
  /** The text of the file with other values in its configuration. */
  withConfig(config: readonly (readonly [key: string, value: Json])[]): Promise<string>
}

/** An environment of Pulumi ESC exists only in Pulumi Cloud. */
function rejectEnvironment({ name, content: { environment } }: StackConfigFile): void {
  const isEmpty = environment === undefined || environment === null || (Array.isArray(environment) && environment.length === 0)
  if (isEmpty) return
  throw new EngineError(
    'InvalidConfiguration',
    `${name}: environment names an environment of Pulumi ESC, which only Pulumi Cloud can open; remove it and set its configuration with spec.variables and spec.variablesFrom and its variables with spec.env of the Stack, or leave the state in Pulumi Cloud with "state: External"`,
    { retryable: false },
  )
}

async function readStackConfig(context: EngineContext, project: PulumiProject, stack: string): Promise<StackConfigFile> {
  for (const extension of ['yaml', 'yml', 'json']) {
    const name = join(project.stackConfigDirectory, `Pulumi.${stack}.${extension}`)
    const path = join(context.directory, name)
    try {
      if (!path.startsWith(`${context.sourceRoot}/`)) throw new Error('it is outside the source')
      const text = await context.files.readText(path, { maxBytes: maxConfigFileBytes })
      if (text !== undefined) return await parseStackConfig(name, text)
    } catch (error) {
      const problem = error instanceof UnexpectedFileError ? error.problem : (error as Error).message.split('\n')[0]
      throw new EngineError('InvalidConfiguration', `${name}: ${problem}`, { retryable: false })
    }
  }
  return await parseStackConfig(join(project.stackConfigDirectory, `Pulumi.${stack}.yaml`), '')
}

/**
 * Exported for its test. Values of the file keep their text: the CLI's YAML has other numbers and dates than that of this process (`017` is 15). The
 * Stack's own are JSON, in which every text has quotes.
 */
export async function parseStackConfig(name: string, text: string): Promise<StackConfigFile> {
  const { parseDocument, isMap, YAMLMap, Scalar } = await import('yaml')
  const parse = (source: string): Document.Parsed => {
    const document = parseDocument(source, { schema: 'failsafe' })
    if (document.errors[0]) throw document.errors[0]
    return document
  }
  const document = parse(text)
  const content: unknown = document.contents === null || document.contents instanceof Scalar ? {} : document.toJS({ maxAliasCount: 100 })
  const isEmpty = document.contents === null || (document.contents instanceof Scalar && document.contents.value === '')
  if (!isJsonObject(content) || (!isEmpty && !isMap(document.contents))) throw new Error('it must be an object')
  return {
    name,
    content,
    withConfig: async config => {
      const root: Document = isEmpty ? parse('{}') : document
      if (!isMap(root.get('config'))) root.set('config', new YAMLMap())
      for (const [key, value] of config) root.setIn(['config', key], parse(JSON.stringify(value)).contents as Node)
      return root.toString({ lineWidth: 0 })
    },
  }
}
