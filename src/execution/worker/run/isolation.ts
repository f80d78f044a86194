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
  ContentStore,
  type ExceededLimit,
  parseRunLimits,
  privateNetworkProblem,
  probeIsolation,
  type RunDirectory,
  RunIsolation,
  sandboxHostname,
} from '../../workspace/index.ts'
import { InputError } from './input-error.ts'
import type { StopCause } from './stop-cause.ts'
import { isSandboxed, namespaceOf, trustDomainOf } from './trust-domain.ts'

export type IsolationOptions = {
  run: Run
  directory: RunDirectory
  contentStore: ContentStore
  /** Further paths that sandboxes may read, from OARLOCK_SANDBOX_BINDS. */
  sandboxBinds: readonly string[]
  /** `mustKill`: more time would mean more of what is limited. */
  onExceeded(cause: StopCause, mustKill: boolean): void
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
export async function createIsolation({ run, directory, contentStore, sandboxBinds, onExceeded }: IsolationOptions): Promise<RunIsolation> {
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
    hostname: sandboxHostname(run.spec.stackRef.uid, run.spec.epoch),
    directory,
    readable: [...sandboxBinds, ...(process.env.TF_CLI_CONFIG_FILE ? [process.env.TF_CLI_CONFIG_FILE] : []), contentStore.visible],
    // An engine over its disk limit may still save its state.
    onExceeded: exceeded => onExceeded(stopCauseOf(run, exceeded), exceeded.kind !== 'Disk' || exceeded.mustKill === true),
  })
}

function readLimits(resources: Parameters<typeof parseRunLimits>[0]): ReturnType<typeof parseRunLimits> {
  try {
    return parseRunLimits(resources)
  } catch (error) {
    throw new InputError('InvalidSpec', 'spec.resources', (error as Error).message)
  }
}

/** The cache directory of a Run. Sandboxed Runs share caches within their namespace only, and not with those that are not sandboxed. */
export function runCacheDir(run: Run, cacheDir: string): string {
  return isSandboxed(run) ? join(cacheDir, 'namespaces', namespaceOf(run)) : cacheDir
}

/**
 * The trees that a Run shares with those of its trust domain. Runs that are not sandboxed could read those of other domains anyway, so they
 * have one directory: there a Run gets a tree of another domain only if it names the digest. The limit on the size is one for all domains.
 */
export function contentStoreOf(run: Run, cacheDir: string, maxBytes?: number): ContentStore {
  const trustDomain = trustDomainOf(run)
  const domain = isSandboxed(run) ? trustDomain : 'shared'
  return new ContentStore({ directory: join(cacheDir, 'content'), domain, trustDomain, maxBytes })
}

export function stopCauseOf(run: Run, exceeded: ExceededLimit): StopCause {
  const { used, limit } = exceeded
  switch (exceeded.kind) {
    case 'Memory':
      return { kind: 'OutOfMemory', used, limit, raise: raisedMemory(run.spec.stack.resources) }
    case 'Pids':
      return { kind: 'TooManyProcesses', used, limit }
    case 'Disk':
      return { kind: 'DiskLimit', used, limit, ...(exceeded.problem !== undefined && { problem: exceeded.problem }) }
  }
}
