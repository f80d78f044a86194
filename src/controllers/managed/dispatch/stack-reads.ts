/** What is read of the Runs and the outputs of a Stack. */
import { endedPhases, outputsSecretName, outputsSecretType, type Run, type RunPhase, runResource, type Stack } from '../../../api/index.ts'
import { type Client, secretResource } from '../../../kubernetes/client/index.ts'
import type { Json, KubeObject } from '../../../kubernetes/object/index.ts'

/** A Run as the status needs it: its frozen spec may be large. */
export function withoutInputs(run: KubeObject<Pick<Run, 'spec' | 'status'>>): KubeObject<Pick<Run, 'spec' | 'status'>> {
  const { stackRef, epoch, type } = run.spec
  const { phase, progress, message, reason } = run.status ?? {}
  return { ...run, spec: { stackRef, epoch, type }, status: { phase, progress, message, reason } } as typeof run
}

/** The newest Run of the Stack unless it has ended: then the status of the Stack has everything. */
export async function activeRun(client: Client, { metadata, status }: Stack, signal: AbortSignal): Promise<Run | undefined> {
  const { lastRun } = status ?? {}
  if (!lastRun || endedPhases.includes(lastRun.phase as RunPhase)) return undefined
  return await client.resource(runResource).getOrUndefined(lastRun.name, { namespace: metadata.namespace, signal })
}

/** All outputs of the last Apply, with secret ones; undefined if there are none. */
export async function outputsOf(
  client: Client,
  { metadata, status }: Stack,
  signal: AbortSignal,
): Promise<Record<string, Json> | undefined> {
  if (!status?.outputsDigest) return undefined
  const { name, namespace } = metadata
  const secret = await client.resource(secretResource).getOrUndefined(outputsSecretName(name), { namespace, signal })
  if (secret?.type !== outputsSecretType) return undefined
  const entries = Object.entries(secret.data ?? {})
  return Object.fromEntries(entries.map(([key, value]) => [key, JSON.parse(Buffer.from(value, 'base64').toString()) as Json]))
}
