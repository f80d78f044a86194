import { createPulumiHandler, listenPulumi, type PulumiHandler } from '../../src/execution/pulumi-backend/index.ts'
import type { MemoryBackend } from '../../src/execution/pulumi-backend/memory-backend.testing.ts'
import type { RecordedExchange, Recording, RecordingHeader } from './recording.ts'
import { type ParsedAnswer, type ReplayOptions, type ReplayResult, replayRecording } from './replay.ts'
import { createScriptedBackend } from './scripted-backend.ts'

/** Another one than in the recordings. */
const accessToken = 'pul-replayed-0123456789abcdef'

export type ReplayedEndpoint = ReplayResult & {
  readonly backend: MemoryBackend
  readonly handler: PulumiHandler
  readonly errors: readonly unknown[]
}

/** Replays a recording against an endpoint that is set up as the recorded one was, with a backend in memory. */
export async function replayOnEndpoint(recording: Recording, options: Pick<ReplayOptions, 'until'> = {}): Promise<ReplayedEndpoint> {
  const { handler, backend, errors } = createEndpoint(recording.header)
  const endpoint = await listenPulumi(handler)
  try {
    const result = await replayRecording({
      ...{ recording, url: endpoint.url, accessToken, comparable, ...options },
      onAction: async ({ action }) => {
        if (action === 'abandon') await handler.abandonUpdates()
      },
    })
    return { ...result, backend, handler, errors }
  } finally {
    await endpoint.close()
  }
}

function createEndpoint({ settings, stacks }: RecordingHeader) {
  const backend = createScriptedBackend(settings, stacks)
  const errors: unknown[] = []
  const { testedCliVersions, deltaCutoffBytes } = settings
  const handler = createPulumiHandler({
    ...{ backend, accessToken, onError: error => errors.push(error) },
    ...(testedCliVersions && { testedCliVersions }),
    ...(deltaCutoffBytes !== undefined && { deltaCutoffBytes }),
  })
  return { handler, backend, errors }
}

/** The endpoint keeps nothing of what the CLI sends for a history of updates; when `secrets` was recorded, its backend in memory did. */
function comparable({ path }: RecordedExchange, answer: ParsedAnswer): unknown {
  if (!path.endsWith('/updates/latest') || answer.status !== 200) return answer
  const { kind, version, result } = (answer.body as { info: Record<string, unknown> }).info
  return { status: answer.status, kind, version, result }
}
