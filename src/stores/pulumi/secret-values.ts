/** A value with this key is special (`sdk/go/common/resource/sig` of github.com/pulumi/pulumi); with the second one, a secret. */
export const signatureKey = '4dabf18193072939515e22adb298388d'
export const secretSignature = '1b47061264138c4ac30d75fd1eb44270'

/** Signatures of special values that are no secrets: asset, archive, reference of a resource, text that is not UTF-8. An output value may be one. */
const plainSignatures = new Set<unknown>([
  'c44067f5952c0a294b673a41bacd8c17',
  '0def7320c3a5731c473e5ecbe6d01bc7',
  '5cf8f73096256a8f31e491e813e4eb8e',
  '803fd3297a5875dc03ca845dda5d2a98',
])

/** Whether a special value of a state or plan is known to be no secret. What it contains may be one. */
export const isPlainSpecialValue = (value: Readonly<Record<string, unknown>>): boolean => plainSignatures.has(value[signatureKey])

/** A secret in a state or plan: encrypted with the secrets provider, or as `pulumi stack export --show-secrets` prints it. */
export type SecretValue = { readonly ciphertext?: string; readonly plaintext?: string }

/** The secret that a value of a state or plan is; undefined if it is another value. */
export function secretOf(value: unknown): SecretValue | undefined {
  if (typeof value !== 'object' || value === null || (value as Record<string, unknown>)[signatureKey] !== secretSignature) return undefined
  return value as SecretValue
}

export const isEncrypted = ({ ciphertext }: SecretValue): boolean => typeof ciphertext === 'string' && ciphertext !== ''

/** The secrets in `value`, at any depth, in their order. */
export function secretsIn(value: unknown): SecretValue[] {
  const found: SecretValue[] = []
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    const secret = secretOf(next)
    if (secret) found.push(secret)
    else if (typeof next === 'object' && next !== null) for (const item of Object.values(next).reverse()) pending.push(item)
  }
  return found
}

/** A copy of a value of a state, with the result of `replace` in place of each secret. */
export function mapSecrets(value: unknown, replace: (secret: SecretValue) => SecretValue): unknown {
  const secret = secretOf(value)
  if (secret) return { [signatureKey]: secretSignature, ...replace(secret) }
  if (Array.isArray(value)) return value.map(item => mapSecrets(item, replace))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapSecrets(item, replace)]))
}
