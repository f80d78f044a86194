import { LimitedProcess, RequestLimitError } from '../../../kubernetes/util/index.ts'
import { EngineError } from '../engine-error.ts'
import { type Manifest, type ManifestFile, parseManifests } from './parse-manifests.ts'
import type { ParseReply } from './parse-process.ts'

/** Shorter texts are parsed here, which takes up to 0.1 s; a process takes that long to start. */
const maxInlineLength = 32 * 1024
/** 16 MB of plain lines take 30 s. */
const defaultTimeoutMs = 120_000
const maxHeapMb = 1_024

export type ParseOptions = { signal: AbortSignal; timeoutMs?: number }

/**
 * {@link parseManifests} without blocking the worker, whose other Runs belong to other users.
 * @throws {EngineError} InvalidConfiguration, also for what takes too long or too much memory; Interrupted when `signal` is aborted.
 */
export async function parseInProcess(
  files: readonly ManifestFile[],
  { signal, timeoutMs = defaultTimeoutMs }: ParseOptions,
): Promise<Manifest[]> {
  if (files.reduce((sum, { text }) => sum + text.length, 0) <= maxInlineLength) return parseManifests(files)
  const parser = new LimitedProcess<readonly ManifestFile[], ParseReply>('execution/engine/manifests/parse-process', {
    ...{ name: 'oarlock-manifests', timeoutMs, maxHeapMb },
  })
  try {
    const reply = await parser.request(files, signal)
    if ('manifests' in reply) return reply.manifests
    throw new EngineError('InvalidConfiguration', reply.message, { retryable: false, diagnostics: reply.diagnostics })
  } catch (error) {
    if (signal.aborted)
      throw new EngineError('Interrupted', 'the Run was interrupted while the manifests were parsed; no object was changed')
    if (!(error instanceof RequestLimitError)) throw error
    throw new EngineError(
      'InvalidConfiguration',
      `parsing the manifests takes more than ${error.limit}: divide the source into several Stacks`,
      {
        retryable: false,
        cause: error,
      },
    )
  } finally {
    await parser.close()
  }
}
