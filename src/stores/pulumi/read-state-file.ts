import { type Deployment, DeploymentError, parseUntypedDeployment, type UntypedDeployment } from './deployment.ts'

/** A state from a file. `stack` is `<project>/<stack>` as its resources are named; undefined without resources. */
export type PulumiStateFile = { state: UntypedDeployment & { deployment: Deployment }; stack: string | undefined }

/**
 * Reads what `pulumi stack export` writes, or a file of a file, S3, GCS or Azure backend, `.pulumi/stacks/…json`, which has the state in a checkpoint.
 * @throws {DeploymentError} for anything else.
 */
export function readStateFile(text: string): PulumiStateFile {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DeploymentError('it is not JSON', { cause: error })
  }
  const { version, features, checkpoint, lineage } = (value ?? {}) as { [name: string]: unknown }
  if (lineage !== undefined) throw new DeploymentError('it is a state of Terraform or OpenTofu')
  const latest = checkpoint === undefined ? undefined : ((checkpoint as { latest?: unknown } | null)?.latest ?? null)
  const { deployment, ...others } = parseUntypedDeployment(
    latest === undefined ? text : JSON.stringify({ version, features, deployment: latest }),
  )
  const state = { ...others, deployment: deployment ?? {} }
  return { state, stack: stackOf(state.deployment) }
}

/** `urn:pulumi:<stack>::<project>::<type>::<name>` */
function stackOf({ resources }: Deployment): string | undefined {
  const [stack, project] = resources?.[0]?.urn.split('::') ?? []
  return stack?.startsWith('urn:pulumi:') && project ? `${project}/${stack.slice('urn:pulumi:'.length)}` : undefined
}

/** Marks a secret value, `{"4dab…":"1b47…","ciphertext":"…"}`, or with `plaintext`; as Pulumi's `resource.SigKey` and `resource.SecretSig`. */
const signatureKey = '4dabf18193072939515e22adb298388d'
const secretSignature = '1b47061264138c4ac30d75fd1eb44270'

/** The secrets in a value of a state: undefined for a value that is none, `encrypted` or `plain` for one. */
export function secretKind(value: unknown): 'encrypted' | 'plain' | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { [signatureKey]: signature, ciphertext } = value as Record<string, unknown>
  if (signature !== secretSignature) return undefined
  return typeof ciphertext === 'string' && ciphertext !== '' ? 'encrypted' : 'plain'
}

/** Which secrets a value contains, at any depth. */
export function secretsIn(value: unknown): Set<'encrypted' | 'plain'> {
  const found = new Set<'encrypted' | 'plain'>()
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    const kind = secretKind(next)
    if (kind) found.add(kind)
    else if (typeof next === 'object' && next !== null) for (const item of Object.values(next)) pending.push(item)
  }
  return found
}
