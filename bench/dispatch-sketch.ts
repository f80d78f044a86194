/**
 * What a Run costs at least: the durable writes and watches of one Run without any controller, dispatcher or worker, as raw requests in the order in
 * which a Run causes them, to the embedded server alone. `bench/dispatch.ts --hollow --sketch` measures it after the real thing.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { assignedFinalizer, oarlockResources, type Run, runResource, type Stack, stackResource } from '../src/api/index.ts'
import { type Client, createClient, installKinds, listWatch } from '../src/kubernetes/client/index.ts'
import { rfc3339 } from '../src/kubernetes/object/index.ts'
import { startServerProcess } from './server-process.ts'

export type SketchResult = {
  readonly succeeded: number
  readonly seconds: number
  /** Milliseconds from before a change until the watch delivered the assignment, ascending. */
  readonly assignedMs: readonly number[]
  /** CPU milliseconds per Run. */
  readonly serverCpuMs: number
  readonly clientCpuMs: number
}

const namespace = 'default'
const tickMs = 10

export async function sketch(options: { stacks: number; runsPerSecond: number; seconds: number }): Promise<SketchResult> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const server = await startServerProcess(dataDir)
  const client = await createClient({ kubeconfig: server.kubeconfigPath })
  const stopWatches = new AbortController()
  try {
    await installKinds(client, oarlockResources)
    const stacks: Stack[] = []
    for (let index = 0; index < options.stacks; index++) stacks.push(await createStack(client, index))
    const assigned = new Map<string, (atMs: number) => void>()
    // The watches of the controllers; their caches are the only ones that receive everything.
    const signal = stopWatches.signal
    const watching = [
      listWatch(client, stackResource, { signal, onReplace: () => {}, onEvent: () => {} }),
      listWatch(client, runResource, {
        signal,
        onReplace: () => {},
        onEvent: ({ object }) => {
          if (object.spec.workerName === undefined) return
          assigned.get(object.metadata.name)?.(performance.now())
          assigned.delete(object.metadata.name)
        },
      }),
      // That of the workers: assigned Runs that have not started.
      listWatch(client, runResource, {
        signal,
        fieldSelector: 'spec.workerName!=,status.phase!=Succeeded',
        onReplace: () => {},
        onEvent: () => {},
      }),
    ]
    const latencies: number[] = []
    const [serverBefore, clientBefore] = [server.cpuSeconds(), process.cpuUsage()]
    const startedMs = performance.now()
    const running = new Set<Promise<void>>()
    const free = stacks.map((_, index) => index)
    const previous: (Run | undefined)[] = []
    let sent = 0
    while (performance.now() - startedMs < options.seconds * 1_000) {
      const due = Math.floor(((performance.now() - startedMs) / 1_000) * options.runsPerSecond)
      for (; sent < due; sent++) {
        const index = free.shift()
        if (index === undefined) continue
        const epoch = (previous[index]?.spec.epoch ?? 0) + 1
        const run = execute(client, stacks[index]!, epoch, previous[index], atMs => latencies.push(atMs), assigned).then(created => {
          previous[index] = created
          free.push(index)
          running.delete(run)
        })
        running.add(run)
      }
      await sleep(tickMs)
    }
    await Promise.all(running)
    const seconds = (performance.now() - startedMs) / 1_000
    const { user, system } = process.cpuUsage(clientBefore)
    const count = latencies.length
    const serverCpuMs = ((server.cpuSeconds() - serverBefore) * 1_000) / count
    stopWatches.abort()
    await Promise.all(watching)
    return {
      ...{ succeeded: count, seconds, serverCpuMs, clientCpuMs: (user + system) / 1_000 / count },
      assignedMs: latencies.sort((a, b) => a - b),
    }
  } finally {
    stopWatches.abort()
    await client.close()
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function createStack(client: Client, index: number): Promise<Stack> {
  return await client.resource(stackResource).create({
    metadata: { name: `sketch-${index}`, namespace, finalizers: ['oarlock.dev/finalizer'] },
    spec: { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { a: 'a' } } } },
  })
}

/** The seven writes of a Run, that of the user included. */
async function execute(
  client: Client,
  stack: Stack,
  epoch: number,
  oldest: Run | undefined,
  onAssigned: (ms: number) => void,
  assigned: Map<string, (atMs: number) => void>,
): Promise<Run> {
  const [stacks, runs] = [client.resource(stackResource), client.resource(runResource)]
  const { name, uid } = stack.metadata
  const runName = `${name}-${epoch}`
  const startedMs = performance.now()
  const seen = new Promise<void>(resolve =>
    assigned.set(runName, atMs => {
      onAssigned(atMs - startedMs)
      resolve()
    }),
  )
  const { metadata, spec } = await stacks.patch(name, { spec: { variables: { epoch } } }, { type: 'merge', namespace })
  const { generation = 1 } = metadata
  const created = await runs.create({
    metadata: { name: runName, namespace },
    spec: {
      ...{ type: 'Apply', epoch, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'default', priority: 0 },
      ...{ stackRef: { name, uid, generation }, stack: spec },
    },
  })
  const at = rfc3339(Date.now())
  const assignment = { metadata: { finalizers: [assignedFinalizer] }, spec: { workerName: 'w', assignedAt: at } }
  const { resourceVersion } = created.metadata
  const run = await runs.patch(runName, assignment, { type: 'merge', namespace, resourceVersion })
  await seen
  const plan = { digest: 'sketch', add: 0, change: 1, destroy: 0 }
  const result = { phase: 'Succeeded', startedAt: at, finishedAt: at, plan, changed: true } as const
  await runs.patchStatus(runName, { status: result }, { namespace, resourceVersion: run.metadata.resourceVersion })
  const lastRun = { name: runName, type: 'Apply', phase: 'Succeeded', reason: 'NewGeneration', finishedAt: at }
  const applied = { generation, revision: 'r', inputsDigest: 'i', at, runName }
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Applied',
    message: 'Applied',
    lastTransitionTime: at,
    observedGeneration: generation,
  } as const
  const status = { observedGeneration: generation, conditions: [ready], lastRunNumber: epoch, lastRun, applied }
  await stacks.patchStatus(name, { status }, { namespace, resourceVersion: metadata.resourceVersion })
  if (oldest) {
    const { name: oldestName, uid: oldestUid } = oldest.metadata
    await runs.delete(oldestName, { namespace, preconditions: { uid: oldestUid } })
    await runs.patch(oldestName, { metadata: { finalizers: [] } }, { type: 'merge', namespace })
  }
  return created as Run
}
