import { hash } from 'node:crypto'
import { hasRegistered, isHostRequested, type Worker } from '../../api/index.ts'

export type ClaimsInput = {
  /** Workers of any pool and phase. */
  readonly workers: readonly Worker[]
  /** The pools that this host serves. */
  readonly pools: ReadonlySet<string>
  /** This process, as `status.agent` names it. */
  readonly agent: string
  /** Processes that run on this host, and workers that are being claimed, started or reported. */
  readonly active: ReadonlySet<string>
  readonly maxWorkers: number
  readonly isDraining: boolean
}

export type ClaimsDecision = {
  /** Requests to claim now, in this order. */
  readonly claim: readonly Worker[]
  /** Claimed by this agent and without a process: an earlier process of this agent ended before it started them. They are reported as failed. */
  readonly fail: readonly Worker[]
}

/**
 * Decides which requests this host claims: as many as it has room for, in an order that differs between agents, so that agents with free room share
 * the requests instead of competing for each. A claim that was never fulfilled is not started late: its outcome is unknown, and the controller requests
 * another worker.
 */
export function decideClaims({ workers, pools, agent, active, maxWorkers, isDraining }: ClaimsInput): ClaimsDecision {
  const requests = workers.filter(isHostRequested)
  const isOwn = (worker: Worker) => worker.status?.phase === 'Starting' && worker.status.agent === agent
  const fail = requests.filter(worker => isOwn(worker) && !active.has(worker.metadata.name))
  const room = isDraining ? 0 : Math.max(0, maxWorkers - active.size)
  if (room === 0) return { claim: [], fail }
  const claim = requests
    .filter(worker => isClaimable(worker) && pools.has(worker.spec.pool) && !active.has(worker.metadata.name))
    .map(worker => ({ worker, rank: hash('sha1', `${agent}/${worker.metadata.uid}`) }))
    .sort((a, b) => compare(a.worker.metadata.creationTimestamp, b.worker.metadata.creationTimestamp) || compare(a.rank, b.rank))
    .slice(0, room)
  return { claim: claim.map(({ worker }) => worker), fail }
}

/** What to report when the process of a worker has ended; undefined if nothing: the worker was deleted, or it ended as it should. */
export function decideExitReport(
  worker: Worker | undefined,
  { agent, exitCode, reason, message }: { agent: string; exitCode: number | undefined; reason?: string | undefined; message: string },
): NonNullable<Worker['status']> | undefined {
  if (!worker || worker.status?.agent !== agent || worker.status.phase === 'Failed') return undefined
  if (hasRegistered(worker) && exitCode === 0) return undefined
  return { phase: 'Failed', message, ...(exitCode !== undefined && { exitCode }), ...(reason !== undefined && { reason }) }
}

const isClaimable = ({ metadata, spec, status }: Worker) =>
  (status?.phase ?? 'Pending') === 'Pending' && !spec.drain && metadata.deletionTimestamp === undefined

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
