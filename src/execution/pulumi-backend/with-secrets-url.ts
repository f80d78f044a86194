import { isJsonObject } from '../../kubernetes/object/index.ts'
import { sliceMembers } from '../../stores/pulumi/index.ts'

/**
 * Replaces the address of the endpoint in a deployment (JSON text of an UntypedDeployment) by `url`.
 *
 * The CLI stores the address at which secrets were encrypted in `secrets_providers.state.url`, and decrypts them there: it fails with "could not find
 * access token for <url>" if that is not where it is logged in. The endpoint of each Run has another port. Everything else keeps its text. A deployment whose
 * secrets have another provider, or none, is returned unchanged.
 */
export function withSecretsUrl(deployment: Uint8Array, url: string): Uint8Array {
  const text = Buffer.from(deployment.buffer, deployment.byteOffset, deployment.byteLength).toString()
  if (!text.includes('"secrets_providers"')) return deployment
  try {
    const outer = sliceMembers(text)
    const inner = sliceMembers(outer.get('deployment') ?? '')
    const provider: unknown = JSON.parse(inner.get('secrets_providers') ?? 'null')
    if (!isJsonObject(provider) || provider.type !== 'service' || !isJsonObject(provider.state) || provider.state.url === url)
      return deployment
    inner.set('secrets_providers', JSON.stringify({ ...provider, state: { ...provider.state, url } }))
    outer.set('deployment', joinMembers(inner))
    return Buffer.from(joinMembers(outer))
  } catch {
    // Not the JSON of a deployment: the CLI reports what is wrong with it.
    return deployment
  }
}

const joinMembers = (members: ReadonlyMap<string, string>): string =>
  `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
