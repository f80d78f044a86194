/** Time from a change of a Stack to its Run being assigned to a Worker. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { labels, runResource, stackResource, systemNamespace, workerPoolResource, workerResource } from '../src/api/index.ts'
import { type Client, leaseResource } from '../src/client/index.ts'
import { rfc3339Micro } from '../src/kube/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const rounds = 200
const concurrencies = [1, 20]

/**
 * The workers here are registrations with a Lease that never do anything, in a pool of mode External:
 * what is measured is the two controllers and the server, with every write durable and over TLS.
 */
export async function bench(): Promise<Bench> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(dataDir)
  try {
    const rows: Bench['rows'] = []
    for (const concurrency of concurrencies) {
      const latencies = await measure(process.client, concurrency)
      latencies.sort((a, b) => a - b)
      const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] as number
      rows.push({ 'changes at once': concurrency, changes: latencies.length, 'p50 ms': at(0.5), 'p99 ms': at(0.99), 'max ms': at(1) })
    }
    return {
      title: 'Stack change → Run assigned',
      about: 'From before the Stack is created until a watcher sees spec.workerName on its Run; all in one process, load from another.',
      rows,
    }
  } finally {
    await process.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measure(client: Client, concurrency: number): Promise<number[]> {
  const pool = `hollow-${concurrency}`
  await client.resource(workerPoolResource).create({ metadata: { name: pool }, spec: { mode: 'External', max: rounds } })
  const stopHeartbeat = await registerWorkers(client, pool, rounds)

  const assigned = new Map<string, (atMs: number) => void>()
  const abort = new AbortController()
  const watching = (async () => {
    for await (const { object } of client.resource(runResource).watch({ signal: abort.signal })) {
      if (object.spec?.workerName) assigned.get(object.spec.stackRef.name)?.(performance.now())
    }
  })().catch(error => {
    if (!abort.signal.aborted) throw error
  })

  const latencies: number[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < rounds) {
        const name = `${pool}-${next++}`
        const seen = new Promise<number>(resolve => assigned.set(name, resolve))
        const started = performance.now()
        await client.resource(stackResource).create({
          metadata: { name, namespace: 'default' },
          spec: { engine: 'command', source: { inline: { files: { a: 'a' } } }, command: { apply: ['true'] }, pool },
        })
        latencies.push((await seen) - started)
      }
    }),
  )
  abort.abort()
  stopHeartbeat()
  await watching
  return latencies
}

async function registerWorkers(client: Client, pool: string, count: number): Promise<() => void> {
  const leases = client.resource(leaseResource)
  const names = Array.from({ length: count }, (_, index) => `${pool}-worker-${index}`)
  for (const name of names) {
    await leases.create({
      metadata: { name, namespace: systemNamespace, labels: { [labels.pool]: pool } },
      spec: { holderIdentity: name, leaseDurationSeconds: 10, renewTime: rfc3339Micro(Date.now()) },
    })
    await client.resource(workerResource).create({ metadata: { name }, spec: { pool, slots: 1, lifecycle: 'OneShot' } })
    await client.resource(workerResource).patchStatus(name, { status: { phase: 'Ready' } })
  }
  const stop = new AbortController()
  void (async () => {
    while (!stop.signal.aborted) {
      await sleep(2_000, undefined, { signal: stop.signal }).catch(() => {})
      if (stop.signal.aborted) return
      const renew = { spec: { renewTime: rfc3339Micro(Date.now()) } }
      await Promise.all(names.map(name => leases.patch(name, renew, { type: 'merge', namespace: systemNamespace }))).catch(error =>
        console.error(error),
      )
    }
  })()
  return () => stop.abort()
}
