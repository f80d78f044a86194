import { systemNamespace } from '../../src/api/index.ts'
import { addDispatchController } from '../../src/controllers/dispatch/index.ts'
import { addStackController } from '../../src/controllers/stack/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../src/kubernetes/controller/index.ts'

/** Settings of the leader election. The lease duration exceeds the delays of a live leader on a busy machine. */
export const election = {
  leaseName: 'controllers',
  namespace: systemNamespace,
  leaseDurationMs: 3_000,
  renewDeadlineMs: 2_000,
  retryPeriodMs: 250,
}

/** Starts stack and dispatch controllers with leader election, for pools of mode External. Workers are declared lost after one minute. */
export async function startControllers(client: Client, identity: string): Promise<Manager> {
  const manager = new Manager({ client, log: silentLog, leaderElection: { ...election, identity } })
  const poolDriver = { start: async () => {}, running: () => [], stop: () => {}, listen: () => {} }
  const { placeNewRun } = addDispatchController(manager, { poolDriver, leaseDurationMs: 60_000 })
  addStackController(manager, { placeNewRun, resolveRevision: async () => 'r1', checkSource: () => [] })
  await manager.start()
  return manager
}
