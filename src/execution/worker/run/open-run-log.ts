import type { Agent } from 'node:http'
import type { Run } from '../../../api/index.ts'
import { createMasker, LogClient } from '../../../stores/log/index.ts'
import type { RunLog } from './run-log.ts'

export type OpenRunLogOptions = {
  storeUrl: string
  /** Connections to the store. */
  storeAgent: Agent
  token: string | (() => string)
  run: Run
  /** Receives errors of sending; they never fail the Run. */
  onError(error: Error): void
}

/** Opens the Run's log in the log store. Secrets are masked in every line (invariant 9). */
export function openRunLog({ storeUrl, storeAgent, token, run, onError }: OpenRunLogOptions): RunLog {
  const masker = createMasker([])
  const { namespace = 'default', name } = run.metadata
  const client = new LogClient({ baseUrl: storeUrl, agent: storeAgent, token, namespace, run: name, onError })
  let lines = 0
  let bytes = 0
  return {
    append(text) {
      if (client.isFull) {
        client.drop(Buffer.byteLength(text) + 1)
        return
      }
      // The masker needs whole lines, and the store stores lines.
      for (const line of masker.mask(text).split('\n')) {
        client.append(line)
        lines++
        bytes += Buffer.byteLength(line) + 1
      }
    },
    get isFull() {
      return client.isFull
    },
    drop: dropped => client.drop(dropped),
    addSecrets(secrets) {
      for (const secret of secrets) masker.add(secret)
    },
    secrets: masker,
    mask: text => masker.mask(text),
    async close() {
      const { flushed } = await client.close()
      return { bytes, lines, truncated: !flushed || client.isFull }
    },
  }
}
