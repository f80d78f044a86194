import { defaults, type Run } from '../../../api/index.ts'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import type { DispatchEvent } from '../dispatch-event.ts'
import { lossOf } from '../failure-detection/index.ts'
import { type ObjectVersion, versionOf } from '../object-version.ts'
import type { Invariants } from './invariants.testing.ts'
import { nameOf, type SimulatedApiServer } from './simulated-api-server.testing.ts'
import type { SimulatedWorkers } from './simulated-workers.testing.ts'
import type { Simulation } from './simulation.testing.ts'

export type ExecuteActionContext = {
  readonly simulation: Simulation
  readonly server: SimulatedApiServer
  readonly workers: SimulatedWorkers
  readonly invariants: Invariants
  /** False: the leader that decided the action has crashed meanwhile, and no leader receives the outcome. */
  readonly isLeading: boolean
}

/** Does what `shell/execute-actions.ts` does. */
export function executeAction(action: DispatchAction, { simulation, server, workers, invariants, isLeading }: ExecuteActionContext): void {
  const reply = (event: DispatchEvent) => {
    if (isLeading) simulation.observe(event)
  }
  const write = (object: ObjectVersion, change: () => void) => {
    const isWritten = server.write(object, change)
    if (!isWritten) simulation.print(`rejected ${action.kind} ${nameOf(object)}`)
    reply({ kind: 'WriteSettled', object, outcome: isWritten ? 'Written' : 'Rejected' })
  }
  switch (action.kind) {
    case 'AssignRun': {
      const { object, worker: workerName, workerPod, atMs, finalizers, policy, tenant } = action
      const key = nameOf(object)
      write(object, () => {
        invariants.checkAssignment(key)
        const { record } = action
        if (record) server.changeWorker(record.object.name, { trustDomain: record.trustDomain })
        const assigned = ({ metadata, spec, ...rest }: Run): Run => ({
          ...rest,
          metadata: { ...metadata, finalizers: [...finalizers] },
          spec: { ...spec, workerName, ...(workerPod && { workerPod }), assignedAt: rfc3339(atMs), policy, ...(tenant && { tenant }) },
        })
        server.changeRun(key, assigned)
        workers.accept(key, workerName)
      })
      return
    }
    case 'PatchRunStatus': {
      const key = nameOf(action.object)
      const { phase, reason, message } = action.status
      if (phase === 'Lost') invariants.checkLoss(key)
      const status = { phase, ...(reason !== null && { reason }), ...(message !== null && { message }) }
      write(action.object, () => server.changeRun(key, run => ({ ...run, status })))
      return
    }
    case 'CancelRun': {
      const key = nameOf(action.object)
      write(action.object, () => {
        server.changeRun(key, run => ({ ...run, spec: { ...run.spec, cancel: true } }))
        workers.cancel(key, server.runs.get(key)?.spec.workerName)
      })
      return
    }
    case 'ReleaseRun':
      write(action.object, () => server.removeRun(nameOf(action.object)))
      return
    case 'StartWorkers': {
      const { pool, workers: names, purposes, claim } = action
      const { name } = pool.metadata
      const start = () => {
        for (const worker of names) {
          workers.startProcess(worker, pool, purposes.get(worker)?.trustDomain)
          // The watch of Pods reports those of another leader.
          const process = { name: worker, pool: name, startedMs: simulation.nowMs, trustDomain: purposes.get(worker)?.trustDomain }
          if (!isLeading) simulation.observe({ kind: 'ProcessObserved', process })
        }
        invariants.checkPoolMaximum(name, pool.spec.max ?? defaults.poolMax)
      }
      if (claim === undefined) start()
      else {
        write(versionOf('WorkerPool', pool), () => {
          server.putPool({ ...pool, status: { ...pool.status, started: claim } })
          start()
        })
      }
      return
    }
    case 'StopProcess':
      if (action.reason === 'NotNeeded') {
        workers.withdraw(action.worker)
        // The watch of Pods reports that it is being deleted.
        reply({ kind: 'ProcessObserved', process: { name: action.worker, pool: '', isReleased: true } })
      } else if (workers.hasProcess(action.worker)) workers.exit(action.worker)
      return
    case 'DrainWorker': {
      const { name } = action.object
      write(action.object, () => {
        workers.drain(name)
        reply({ kind: 'WorkerExited', worker: name, exitCode: 0 })
      })
      return
    }
    case 'ConfirmLoss': {
      const { worker, lease } = action
      const outcome = lossOf(server.leases.get(worker), lease)
      if (outcome === 'Lost') server.deleteLease(worker)
      reply({ kind: 'LossSettled', worker, outcome })
      return
    }
    case 'DeleteWorkers':
      for (const name of action.names) if (server.workers.has(name)) workers.remove(name)
      return
    case 'DeleteWorker':
    case 'FailWorker':
      write(action.object, () => workers.remove(action.object.name))
      return
    case 'PatchPoolStatus':
      write(versionOf('WorkerPool', action.pool), () => server.putPool({ ...action.pool, status: action.status }))
      return
    case 'PatchTenantStatus':
      reply({ kind: 'TenantChanged', tenant: { ...action.tenant, status: action.status } })
      reply({ kind: 'WriteSettled', object: versionOf('Tenant', action.tenant), outcome: 'Written' })
      return
    case 'ConfirmSubject':
    case 'ReportStartFailure':
      return
  }
}
