import { join } from 'node:path'
import { isolationLevels, type Run, raisedMemory } from '../../../api/index.ts'
import {
  type ExceededLimit,
  parseRunLimits,
  privateNetworkProblem,
  probeIsolation,
  type RunDirectory,
  RunIsolation,
} from '../../workspace/index.ts'
import { InputError } from './input-error.ts'
import type { StopCause } from './stop-cause.ts'

export type IsolationOptions = {
  run: Run
  directory: RunDirectory
  /** The caches that this Run may read. */
  cacheDir: string
  /** Further paths that sandboxes may read, from OARLOCK_SANDBOX_BINDS. */
  sandboxBinds: readonly string[]
  /** A sandbox may use the network of this machine. */
  allowHostNetwork: boolean
  onExceeded(cause: StopCause): void
}

/**
 * Creates the isolation that the Run's spec requires.
 * @throws {InputError} IsolationUnavailable if this worker lacks it: a weaker level is never used instead.
 */
export async function createIsolation({
  run,
  directory,
  cacheDir,
  sandboxBinds,
  allowHostNetwork,
  onExceeded,
}: IsolationOptions): Promise<RunIsolation> {
  const { isolation, resources = {} } = run.spec.stack
  const level = isolationLevels.find(each => each === isolation?.level) ?? 'Process'
  const network = isolation?.network ?? (level === 'Sandbox' ? 'Private' : 'Host')
  if (network !== 'Host' && level !== 'Sandbox') {
    throw new InputError('InvalidSpec', 'spec.isolation.network', `${network} requires spec.isolation.level Sandbox, got ${level}`)
  }
  if (network === 'Host' && level === 'Sandbox' && !allowHostNetwork) {
    const remedy = 'use Private or None, or let an administrator set spec.allowHostNetwork of the WorkerPool'
    throw new InputError('IsolationUnavailable', 'spec.isolation.network', `Host is not allowed on this worker: ${remedy}`)
  }
  const available = await probeIsolation(level)
  if (!available.available) {
    throw new InputError('IsolationUnavailable', 'spec.isolation.level', `${level} is not available on this worker: ${available.reason}`)
  }
  const problem = network === 'Private' ? privateNetworkProblem(available.sandbox?.slirp4netns) : undefined
  if (problem !== undefined) {
    throw new InputError('IsolationUnavailable', 'spec.isolation.network', `Private is not available on this worker: ${problem}`)
  }
  const limits = readLimits(resources)
  return new RunIsolation({
    level,
    sandbox: available.sandbox,
    network,
    limits,
    runUid: run.metadata.uid,
    directory,
    readable: [...sandboxBinds, ...(process.env.TF_CLI_CONFIG_FILE ? [process.env.TF_CLI_CONFIG_FILE] : []), ...pluginCacheDirs(cacheDir)],
    onExceeded: exceeded => onExceeded(stopCauseOf(run, exceeded)),
  })
}

function readLimits(resources: Parameters<typeof parseRunLimits>[0]): ReturnType<typeof parseRunLimits> {
  try {
    return parseRunLimits(resources)
  } catch (error) {
    throw new InputError('InvalidSpec', 'spec.resources', (error as Error).message)
  }
}

/**
 * The cache directory of a Run. Other Runs execute what a sandboxed program writes to a cache (a provider is a program), so sandboxed
 * Runs share caches within their namespace only.
 */
export function runCacheDir(run: Run, cacheDir: string): string {
  if (run.spec.stack.isolation?.level !== 'Sandbox') return cacheDir
  return join(cacheDir, 'namespaces', run.metadata.namespace ?? 'default')
}

const pluginCacheDirs = (cacheDir: string) => ['terraform', 'opentofu'].map(name => join(cacheDir, `${name}-plugins`))

export function stopCauseOf(run: Run, { kind, used, limit }: ExceededLimit): StopCause {
  switch (kind) {
    case 'Memory':
      return { kind: 'OutOfMemory', used, limit, raise: raisedMemory(run.spec.stack.resources) }
    case 'Pids':
      return { kind: 'TooManyProcesses', used, limit }
    case 'Disk':
      return { kind: 'DiskLimit', used, limit }
  }
}
