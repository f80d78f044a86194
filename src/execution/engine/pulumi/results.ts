import type { Json } from '../../../kubernetes/object/index.ts'
import { type Deployment, parseUntypedDeployment, type Resource, type SecretValue, secretsIn } from '../../../stores/pulumi/index.ts'
import type { ApplyResult, Output } from '../engine.ts'
import { hasUnknown, replaceSecrets } from './secret-marks.ts'
import { isCounted, rootType, typeOf } from './urn.ts'

/** The state store decrypts at most this many values in one request. */
const maxValues = 10_000

/** The resources of a state, as the CLI exports it. Undefined: there is none. */
export function deploymentOf(bytes: Uint8Array | undefined): Deployment {
  return (bytes && parseUntypedDeployment(Buffer.from(bytes).toString('utf8')).deployment) || {}
}

/** Those that exist: not those that a replacement is to delete. */
export const liveResources = ({ resources }: Deployment): readonly Resource[] => (resources ?? []).filter(each => each.delete !== true)

export const countResources = (deployment: Deployment): number => liveResources(deployment).filter(({ urn }) => isCounted(urn)).length

/** The outputs of the stack as they are stored: secrets are encrypted. */
export function storedOutputs(deployment: Deployment): Readonly<Record<string, unknown>> {
  const root = liveResources(deployment).find(({ urn }) => typeOf(urn) === rootType)
  return (root?.outputs as Record<string, unknown> | undefined) ?? {}
}

/**
 * The outputs of the stack, in clear text. One that contains a secret is sensitive as a whole. One that is not known is left out: it depends on a
 * resource that an update with targets has not created.
 * @param decrypt gets what the CLI has encrypted for the stack, in its order.
 */
export async function readOutputs(
  deployment: Deployment,
  decrypt: (ciphertexts: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>,
): Promise<ApplyResult['outputs']> {
  const stored = storedOutputs(deployment)
  const ciphertexts = [...new Set(secretsIn(stored).flatMap(({ ciphertext }) => ciphertext ?? []))]
  const plain = new Map<string, Json>()
  for (let start = 0; start < ciphertexts.length; start += maxValues) {
    const part = ciphertexts.slice(start, start + maxValues)
    const values = await decrypt(part.map(each => Buffer.from(each, 'base64')))
    for (const [index, each] of part.entries()) plain.set(each, JSON.parse(Buffer.from(values[index] ?? []).toString('utf8')) as Json)
  }
  const valueOfSecret = ({ ciphertext, plaintext }: SecretValue): Json =>
    plaintext !== undefined ? (JSON.parse(plaintext) as Json) : (plain.get(ciphertext ?? '') ?? null)
  const outputs: Record<string, Output> = {}
  for (const [name, value] of Object.entries(stored)) {
    if (hasUnknown(value)) continue
    outputs[name] = { value: replaceSecrets(value, valueOfSecret), sensitive: secretsIn(value).length > 0 }
  }
  return outputs
}
