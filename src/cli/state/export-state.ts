import { DeploymentError, isEncrypted, mapSecrets, readStateFile, secretsIn } from '../../stores/pulumi/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import type { PassphraseSecrets } from './passphrase-secrets.ts'

/** Values of one request to the store, and their size in base64. */
const maxValues = 10_000
const maxBytes = 8 * 1024 * 1024

/** Whether a state has secrets that only the store decrypts, for this Stack. False for what is no state of Pulumi, such as a journal. */
export function isForStackOnly(text: string): boolean {
  try {
    const { deployment } = readStateFile(text).state
    const type = deployment.secrets_providers?.type ?? 'service'
    return type === 'service' && secretsIn(deployment.resources).some(isEncrypted)
  } catch (error) {
    if (error instanceof DeploymentError) return false
    throw error
  }
}

/** Where `pulumi stack import` expects to be logged in for a state without another provider; it then encrypts with that of its stack. */
const pulumiCloud = 'https://api.pulumi.com'

/**
 * The state for other backends, as `pulumi stack export` writes it: with its secrets in plain text, or encrypted by `passphrase`.
 * @param decrypt what the store has encrypted for the Stack, in base64.
 * @throws {CliError} if another provider has encrypted them, which `pulumi stack import` uses too.
 */
export async function exportState(
  text: string,
  decrypt: (values: readonly string[]) => Promise<readonly string[]>,
  passphrase?: PassphraseSecrets,
): Promise<string> {
  const { state, stack: path } = read(text)
  const { secrets_providers: provider, ...deployment } = state.deployment
  if (provider !== undefined && provider.type !== 'service' && secretsIn(deployment).some(isEncrypted)) {
    throw new CliError(`the secrets of this state are encrypted with ${provider.type}, which the state store cannot decrypt`, {
      exitCode: exitCodes.rejected,
      hint: 'pull it without --show-secrets and --encrypt-with-passphrase: "pulumi stack import" reads it with that passphrase or access to that key',
    })
  }
  const ciphertexts = new Set(secretsIn(deployment).flatMap(({ ciphertext }) => ciphertext || []))
  const plain = new Map<string, string>()
  for (const batch of batchesOf([...ciphertexts])) {
    const values = await decrypt(batch)
    if (values.length !== batch.length)
      throw new CliError(`the state store has decrypted ${values.length} values, not the ${batch.length} that it was asked for`)
    for (const [index, value] of values.entries()) plain.set(batch[index]!, Buffer.from(value, 'base64').toString('utf8'))
  }
  const exported = mapSecrets(deployment, ({ ciphertext, plaintext = 'null' }) => {
    const text = ciphertext ? plain.get(ciphertext) : plaintext
    if (text === undefined) throw new CliError('bug: a secret of the state was not decrypted')
    return passphrase ? { ciphertext: passphrase.encrypt(text) } : { plaintext: text }
  }) as object
  const [project = '', stack = ''] = (path ?? '').split('/')
  const cloud = { type: 'service', state: { url: pulumiCloud, owner: '', project, stack } }
  // The CLI does not import secrets without a provider.
  return `${JSON.stringify({ ...state, deployment: { ...exported, secrets_providers: passphrase?.provider ?? cloud } }, undefined, 4)}\n`
}

function read(text: string): ReturnType<typeof readStateFile> {
  try {
    return readStateFile(text)
  } catch (error) {
    if (!(error instanceof DeploymentError)) throw error
    throw new CliError(`this version cannot be shown with its secrets: ${error.message}`, { exitCode: exitCodes.rejected })
  }
}

function* batchesOf(values: readonly string[]): Generator<string[]> {
  let batch: string[] = []
  let bytes = 0
  for (const value of values) {
    if (batch.length === maxValues || (batch.length > 0 && bytes + value.length > maxBytes)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(value)
    bytes += value.length
  }
  if (batch.length > 0) yield batch
}
