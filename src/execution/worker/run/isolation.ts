import { join } from 'node:path'
import {
  applyPolicy,
  isMutating,
  type PolicySource,
  type PolicyViolation,
  type Run,
  type RunPolicy,
  raisedMemory,
} from '../../../api/index.ts'
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
  onExceeded(cause: StopCause): void
}

/** The networks of a WorkerPool that names none. */
const defaultNetworks: RunPolicy['allowedNetworks'] = ['Private', 'None']

/**
 * The Run with the isolation and the limits that it gets: what its assignment requires (`spec.policy`), and what this worker requires itself, so
 * that a Run that was assigned wrongly is not executed below it. A controller of an earlier version assigns Runs without a policy: what the worker
 * requires, which includes what its pool does, applies to them alone.
 */
export function enforcePolicy(run: Run, own: RunPolicy): { readonly run: Run; readonly violations: readonly PolicyViolation[] } {
  const { stack, policy } = run.spec
  const sources: PolicySource[] = [
    ...(policy ? [{ origin: 'spec.policy of the Run', policy }] : []),
    { origin: 'this worker', policy: policy ? own : { allowedNetworks: defaultNetworks, ...own } },
  ]
  const { isolation, resources, violations } = applyPolicy(stack, sources)
  return { run: { ...run, spec: { ...run.spec, stack: { ...stack, isolation, resources } } }, violations }
}

/**
 * Creates the isolation that the spec of a Run requires, which {@link enforcePolicy} returned.
 * @throws {InputError} IsolationUnavailable if this worker lacks it: a weaker level is never used instead.
 */
export async function createIsolation({ run, directory, cacheDir, sandboxBinds, onExceeded }: IsolationOptions): Promise<RunIsolation> {
  const { isolation, resources = {} } = run.spec.stack
  const { level = 'Process', network = 'Host' } = isolation ?? {}
  if (network !== 'Host' && level !== 'Sandbox') {
    throw new InputError('InvalidSpec', 'spec.isolation.network', `${network} requires spec.isolation.level Sandbox, got ${level}`)
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
    mutatedStackUid: isMutating(run.spec.type) ? run.spec.stackRef.uid : undefined,
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
