import type { IsolationLevel, Network } from '../../api/index.ts'
import type { Finding } from './finding.ts'

export type Machine = {
  /** Isolation levels that its workers support. */
  readonly levels: readonly IsolationLevel[]
  /** Networks that its sandboxes can have; undefined without level Sandbox. */
  readonly networks: readonly Network[] | undefined
  /** Whether the kernel limits cpu; the worker enforces the other limits itself. */
  readonly limitsCpu: boolean
}

/** What a worker on this machine can enforce of what Tenants and WorkerPools require (docs/isolation.md, "Required isolation"). */
export function enforceablePolicies({ levels, networks, limitsCpu }: Machine): Finding {
  const limits = limitsCpu ? 'cpu, memory, pids, disk' : 'memory, pids, disk, not cpu'
  const detail = `minimumIsolation ${levels.join(', ')}; allowedNetworks ${networks?.join(', ') ?? 'none'}; maxResources ${limits}`
  const isComplete = networks?.includes('Private') === true && limitsCpu
  const fix = networks
    ? 'for the rest see above; Runs that require it are assigned to other workers, except that cpu is not limited'
    : 'Runs of a Tenant or WorkerPool with minimumIsolation Sandbox are assigned to other workers; see above'
  return { what: 'enforceable', state: isComplete ? 'ok' : 'warning', detail, ...(!isComplete && { fix }) }
}
