import type { Stack } from '../../api/index.ts'
import { gitCredentials, resolveRevision, SourceError } from '../../execution/workspace/index.ts'
import { type Client, secretResource } from '../../kubernetes/client/index.ts'

const timeoutMs = 60_000

/** The current revision of a Stack's source. Called repeatedly, so it is limited to one minute. */
export async function currentRevision(
  client: Client,
  stack: Stack,
  options: { allowPaths: readonly string[]; cacheDir: string },
): Promise<string> {
  const { source } = stack.spec
  const { namespace } = stack.metadata
  const signal = AbortSignal.timeout(timeoutMs)
  const secretName = source.git?.secretRef?.name
  if (secretName === undefined) return await resolveRevision(source, { ...options, signal })
  const secret = await client.resource(secretResource).getOrUndefined(secretName, { namespace })
  if (!secret) throw new SourceError('SourceAuthFailed', 'spec.source.git.secretRef', `Secret ${namespace}/${secretName} does not exist`)
  const credentials = gitCredentials(secret.data ?? {}, `${namespace}/${secretName}`)
  return await resolveRevision(source, { ...options, credentials, signal })
}
