/** Renewals of Leases are acknowledged before they are on disk: the one exception to invariants 5 and 6, with SIGKILL at any time. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { type Client, createClient, leaseResource } from '../client/index.ts'
import { LeaseHolder, leaseStore } from '../controller/lease-holder.ts'
import { isReason } from '../object/index.ts'
import { makeDataDir, startTestServer } from './server.testing.ts'

const program = `
import { startServer } from ${JSON.stringify(new URL('./index.ts', import.meta.url).href)}
const [dataDir, port] = process.argv.slice(1)
const server = await startServer({ dataDir, listen: { port: Number(port) } })
console.log(server.port)
`

const namespace = 'default'

/** A server in a process of its own that can be killed and started again at its address. */
class KillableServer {
  readonly dataDir = makeDataDir()
  #child: ChildProcess | undefined
  #port = 0

  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, this.dataDir, String(this.#port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    const [line] = (await Promise.race([
      once(createInterface(child.stdout!), 'line'),
      once(child, 'exit').then(([code]) => assert.fail(`the server ended with code ${code} before it listened`)),
    ])) as [string]
    this.#port = Number(line)
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  connect(): Promise<Client> {
    return createClient({ kubeconfig: join(this.dataDir, 'kubeconfig') })
  }

  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}

const spec = (renewTime: string) => ({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0, renewTime })
const time = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000Z`

test('after SIGKILL a lost renewal can neither be overwritten unnoticed nor missed by a watch', async () => {
  const server = new KillableServer()
  await server.start()
  const client = await server.connect()
  try {
    const leases = client.resource(leaseResource)
    const created = await leases.create({ metadata: { name: 'a', namespace }, spec: spec(time(0)) })
    await leases.create({ metadata: { name: 'free', namespace }, spec: { leaseDurationSeconds: 15 } })
    const renew = (second: number) => leases.patch('a', { spec: { renewTime: time(second) } }, { type: 'merge', namespace })
    let renewed = created
    for (let second = 1; second <= 9; second++) renewed = await renew(second)
    await server.kill()
    await server.start()

    const stored = await leases.get('a', { namespace })
    const { renewTime, ...rest } = stored.spec!
    assert.deepEqual(rest, { holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0 })
    assert.ok(renewTime! > time(59), `every observer sees a change, got ${renewTime}`)
    assert.ok(Number(stored.metadata.resourceVersion) > Number(renewed.metadata.resourceVersion))
    const free = await leases.get('free', { namespace })
    assert.ok(Number(free.metadata.resourceVersion) < Number(renewed.metadata.resourceVersion), 'a Lease without a holder is not renewed')
    // Neither the holder nor a candidate that has seen an older version can write without reading.
    for (const known of [created, renewed]) {
      await assert.rejects(
        leases.update({ ...known, spec: { ...known.spec, holderIdentity: 'b' } }),
        error => isReason(error, 'Conflict'),
        'an update from a version before the crash',
      )
    }
    for (const known of [created, renewed]) {
      const watch = leases.watch({ namespace, resourceVersion: known.metadata.resourceVersion })
      await assert.rejects(watch[Symbol.asyncIterator]().next(), error => isReason(error, 'Expired', 'Gone'))
    }
    const taken = await leases.update({ ...stored, spec: { ...stored.spec, holderIdentity: 'b' } })
    await server.kill()
    await server.start()
    const after = await leases.get('a', { namespace })
    assert.equal(after.spec!.holderIdentity, 'b', 'a holder change is durable')
    assert.equal(after.metadata.resourceVersion === taken.metadata.resourceVersion, false)
  } finally {
    await client.close()
    await server.remove()
  }
})

test('a leader keeps its Lease while the server is killed and started again', async () => {
  const server = new KillableServer()
  await server.start()
  const [first, second] = [await server.connect(), await server.connect()]
  const stop = new AbortController()
  try {
    const options = { leaseName: 'leader', namespace, leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 100 }
    const holders = [first, second].map((client, index) => {
      const own = { ...options, identity: `holder-${index}` }
      return new LeaseHolder({ ...own, store: leaseStore(client, own) })
    })
    const lost: string[] = []
    const gained = holders.map(
      (holder, index) =>
        new Promise<void>(resolve => {
          const onGained = () => resolve()
          const onLost = () => void (stop.signal.aborted || lost.push(`holder-${index}`))
          setImmediate(() => running.push(holder.run(stop.signal, { onGained, onLost })))
        }),
    )
    const running: Promise<void>[] = []
    await Promise.race(gained)
    const leases = first.resource(leaseResource)
    const leader = (await leases.get('leader', { namespace })).spec!.holderIdentity
    for (let kill = 0; kill < 3; kill++) {
      // At least three renewals are acknowledged and not on disk.
      for (let seen = new Set<string>(); seen.size < 3; ) {
        const { renewTime } = (await leases.get('leader', { namespace })).spec!
        seen.add(renewTime!)
      }
      await server.kill()
      await server.start()
    }
    for (let seen = new Set<string>(); seen.size < 3; ) {
      const { spec } = await leases.get('leader', { namespace })
      assert.equal(spec!.holderIdentity, leader)
      seen.add(spec!.renewTime!)
    }
    assert.deepEqual(lost, [])
    assert.equal(holders.filter(({ isHeld }) => isHeld).length, 1)
    stop.abort()
    await Promise.all(running)
  } finally {
    stop.abort()
    await first.close()
    await second.close()
    await server.remove()
  }
})

test('only a renewal by the same holder is deferred', async () => {
  const server = await startTestServer()
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
  const deferred = () => server.server.stats().deferredWrites
  try {
    await server.call(path, { body: { metadata: { name: 'a' }, spec: spec(time(0)) } })
    const patch = (change: unknown) => server.call(`${path}/a`, { method: 'PATCH', type: 'application/merge-patch+json', body: change })
    for (const [change, expected] of [
      [{ spec: { renewTime: time(1) } }, 1],
      [{ spec: { renewTime: time(2), leaseTransitions: 1 } }, 0],
      [{ spec: { renewTime: time(3) } }, 1],
      [{ spec: { renewTime: time(4), holderIdentity: 'b' } }, 0],
      [{ spec: { renewTime: time(5) } }, 1],
      [{ spec: { renewTime: time(6), leaseDurationSeconds: 20 } }, 0],
      [{ spec: { renewTime: time(7) }, metadata: { labels: { a: 'b' } } }, 0],
      [{ spec: { renewTime: time(8) } }, 1],
      [{ spec: { renewTime: null } }, 0],
      [{ spec: { renewTime: time(9) } }, 0],
      [{ spec: { renewTime: time(10) } }, 1],
      [{ spec: { holderIdentity: '' } }, 0],
      [{ spec: { renewTime: time(11) } }, 0],
    ] as const) {
      const { code, body } = await patch(change)
      assert.equal(code, 200, JSON.stringify(body))
      assert.equal(deferred(), expected, JSON.stringify(change))
    }
    await patch({ spec: { holderIdentity: 'a' } })
    await patch({ spec: { renewTime: time(12) } })
    assert.equal(deferred(), 1)
    await server.call(`${path}/a`, { method: 'DELETE' })
    assert.equal(deferred(), 0)
  } finally {
    await server.close()
  }
})
