import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Type from 'typebox'
import { startServerProcess } from '../../bench/server-process.ts'
import { createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import {
  addFinalizer,
  controller,
  Manager,
  patchStatusIfChanged,
  removeFinalizer,
  silentLog,
} from '../../src/kubernetes/controller/index.ts'
import { defineResource } from '../../src/kubernetes/object/index.ts'
import { type Faults, withFaults } from '../../src/kubernetes/testing/index.ts'
import { eventually } from './eventually.ts'

const buoyResource = defineResource({
  group: 'soak.oarlock.dev',
  version: 'v1',
  kind: 'Buoy',
  plural: 'buoys',
  scope: 'Namespaced',
  description: 'A buoy.',
  spec: Type.Object({ depth: Type.Integer() }),
  status: Type.Object({ seen: Type.Optional(Type.Integer()) }),
})
const finalizer = 'soak.oarlock.dev/chain'

export type SoakRound = { heapMb: number; resources: number; listeners: number; cached: number; queued: number }
export type SoakReport = {
  rounds: SoakRound[]
  reconciles: number
  faults: number
  /** Open resources of the process before the client was created and after everything was stopped. */
  resourcesBefore: number
  resourcesAfter: number
  warnings: string[]
}

/**
 * Rounds of the same work (objects created, changed, reconciled with a finalizer and a status, deleted) with every kind of fault in 1 %
 * of the requests, until `isOver`. After each round everything is idle and garbage is collected, so that what remains is retained.
 */
export async function soak(
  isOver: (rounds: SoakRound[]) => boolean,
  options: { objects?: number; rate?: number } = {},
): Promise<SoakReport> {
  const { objects = 100, rate = 0.01 } = options
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-soak-'))
  const server = await startServerProcess(dataDir)
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.message)
  process.on('warning', onWarning)
  const resourcesBefore = process.getActiveResourcesInfo().length
  const rounds: SoakRound[] = []
  let reconciles = 0
  let listeners = 0
  const direct = await createClient({ kubeconfig: server.kubeconfigPath })
  const faults: Faults = {
    drop: rate,
    dropResponse: rate,
    delay: rate,
    conflict: rate,
    expired: rate,
    tooManyRequests: rate,
    internalError: rate,
    duplicate: rate,
    repeatEvents: rate,
    breakWatch: rate,
    staleEvents: rate,
  }
  const client = withFaults(direct, faults)
  const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 5, maxMs: 100 } } })
  try {
    await installKinds(direct, [buoyResource])
    const buoys = manager.informer(buoyResource, { indexes: { depth: ({ spec }) => [String(spec.depth)] }, hotObjects: 20 })
    const handle = direct.resource(buoyResource)
    const made = controller({
      name: 'buoys',
      for: buoyResource,
      backoff: { baseDelayMs: 2, maxDelayMs: 50 },
      groupOf: key => key.slice(-1),
      async reconcile({ object: buoy, client, signal }) {
        reconciles++
        listeners = Math.max(listeners, getEventListeners(signal, 'abort').length)
        if (!buoy) return
        if (buoy.metadata.deletionTimestamp) {
          await removeFinalizer(client, buoy, finalizer)
          return
        }
        const held = await addFinalizer(client, buoy, finalizer)
        await patchStatusIfChanged(client, held, { seen: held.spec.depth })
      },
    })
    manager.add(made)
    await manager.start()
    const names = Array.from({ length: objects }, (_, index) => `buoy-${index}`)
    const areSeen = (depth: number) =>
      buoys.byIndex('depth', String(depth)).filter(({ status }) => status?.seen === depth).length === objects
    while (!isOver(rounds)) {
      await Promise.all(names.map(name => handle.create({ metadata: { name }, spec: { depth: 1 } })))
      await eventually(() => areSeen(1), 'all are seen', 30_000)
      await Promise.all(names.map(name => handle.patch(name, { spec: { depth: 2 } }, { type: 'merge' })))
      await eventually(() => areSeen(2), 'all are seen again', 30_000)
      await Promise.all(names.map(name => handle.delete(name)))
      await eventually(
        () => buoys.size === 0 && made.depth.running + made.depth.waiting + made.depth.delayed === 0,
        'all are deleted',
        30_000,
      )
      gc()
      const { heapUsed, external } = process.memoryUsage()
      rounds.push({
        heapMb: (heapUsed + external) / 1e6,
        resources: process.getActiveResourcesInfo().length,
        listeners,
        cached: buoys.size,
        queued: made.depth.delayed,
      })
    }
  } finally {
    await manager.stop({ graceMs: 1_000 })
    await direct.close()
    await server.stop()
    process.off('warning', onWarning)
    rmSync(dataDir, { recursive: true, force: true })
  }
  await eventually(() => process.getActiveResourcesInfo().length <= resourcesBefore, 'sockets and timers are closed', 5_000).catch(
    () => undefined,
  )
  return {
    rounds,
    reconciles,
    faults: Object.values(client.injected).reduce((sum, count) => sum + count, 0),
    resourcesBefore,
    resourcesAfter: process.getActiveResourcesInfo().length,
    warnings,
  }
}

/**
 * Growth per round: the median of the slopes between all pairs of rounds (Theil-Sen estimator), which ignores single outliers and
 * detects a leak.
 */
export function growthPerRound(figures: readonly number[]): number {
  const slopes = figures.flatMap((figure, index) => figures.slice(index + 1).map((later, distance) => (later - figure) / (distance + 1)))
  return slopes.sort((a, b) => a - b)[Math.floor(slopes.length / 2)] ?? 0
}
