import type { Run } from '../api/index.ts'
import type { Client } from '../kubernetes/client/index.ts'
import { isReason } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { storeError } from './store-error.ts'

export type LogOptions = {
  follow: boolean
  tail?: number
  timestamps?: boolean
  sinceMs?: number | undefined
  signal?: AbortSignal
  /** The log was stored by a version that recorded no times. */
  onMissingTimes?: () => void
}

/** Passes the log of a Run to `write` as it arrives; with `follow` until the Run has ended. */
export async function streamLog(client: Client, run: Run, options: LogOptions, write: (bytes: Uint8Array) => void): Promise<void> {
  const { namespace = '', name } = run.metadata
  try {
    const { body, headers } = await client.stream({
      method: 'GET',
      path: `/logs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`,
      query: {
        follow: options.follow ? 1 : undefined,
        tail: options.tail,
        timestamps: options.timestamps ? 1 : undefined,
        since: options.sinceMs,
      },
      headers: { accept: 'text/plain' },
      signal: options.signal,
      // A Run may write nothing for hours.
      idleTimeoutMs: 0,
    })
    if (headers['oarlock-times'] === 'missing') options.onMissingTimes?.()
    for await (const chunk of body) write(chunk)
  } catch (error) {
    if (options.signal?.aborted) return
    if (isReason(error, 'NotFound')) {
      throw new CliError(`run/${name} has no log`, {
        exitCode: exitCodes.notFound,
        hint: 'the Run has not started, or was deleted with its log (spec.historyLimit of the Stack)',
      })
    }
    throw storeError(error, `log of run/${name}`)
  }
}
