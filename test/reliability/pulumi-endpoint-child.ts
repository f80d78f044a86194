/**
 * A process with the endpoint of the Pulumi CLI over a backend in memory, for fuzz-pulumi.test.ts. It answers `reset` with new updates, which are running, and `memory`
 * with its memory after a garbage collection.
 */
import { createPulumiHandler, listenPulumi } from '../../src/execution/pulumi-backend/index.ts'
import { MemoryBackend } from '../../src/execution/pulumi-backend/memory-backend.testing.ts'
import { callPulumi } from '../../src/execution/pulumi-backend/pulumi-client.testing.ts'
import type { MemoryReport } from './endpoint-server.ts'

export type PulumiTargets = {
  readonly url: string
  readonly accessToken: string
  /** An update, a preview, and an update that was created and not started. */
  readonly update: string
  readonly updateToken: string
  readonly preview: string
  readonly previewToken: string
  readonly created: string
}

const accessToken = `pul-${'0123456789abcdef'.repeat(2)}`
const backend = new MemoryBackend()
const handler = createPulumiHandler({
  ...{ backend, accessToken, maxBodyBytes: 1_048_576, bodyIdleMs: 2_000, maxRefusedBytes: 1_048_576 },
  ...{ deltaCutoffBytes: 1, onError: error => console.error(error) },
})
const { url } = await listenPulumi(handler)

async function reset(): Promise<PulumiTargets> {
  await handler.abandonUpdates()
  backend.stacks.clear()
  backend.stacks.set('apps/web/dev', { tags: {}, versions: [] })
  backend.stacks.set('apps/web/prod', { tags: {}, versions: [] })
  for (const list of [backend.calls, backend.refused, backend.events, backend.started]) list.length = 0
  const path = '/api/stacks/apps/web/dev'
  const create = async (kind: string) =>
    String((await callPulumi(url, 'POST', `${path}/${kind}`, { token: accessToken, body: {} })).json.updateID)
  const start = async (id: string) =>
    String((await callPulumi(url, 'POST', `${path}/update/${id}`, { token: accessToken, body: { journalVersion: 1 } })).json.token)
  const [update, preview, created] = [await create('update'), await create('preview'), await create('preview')]
  return { url, accessToken, update, updateToken: await start(update), preview, previewToken: await start(preview), created }
}

process.on('message', async message => {
  if (message === 'reset') process.send?.(await reset())
  else {
    for (let i = 0; i < 3; i++) {
      globalThis.gc?.()
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    const { heapUsed: heapBytes, rss: rssBytes } = process.memoryUsage()
    process.send?.({ kind: 'memory', heapBytes, rssBytes } satisfies MemoryReport)
  }
})
process.send?.('ready')
