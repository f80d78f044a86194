import { deepEqual, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../src/kubernetes/util/index.ts'
import { check, type Operation, type Version, type WatchedEvent, type WatchLog } from './history.ts'
import { type Item, type ServerChild, spawnServer, startServerChild } from './server-child.ts'

/** 200 in the full run: OARLOCK_TEST_KILLS=200 node --test test/reliability/kill.slow.test.ts */
const kills = Number(process.env.OARLOCK_TEST_KILLS ?? 12)
const writers = 64
const keys = Array.from({ length: 24 }, (_, index) => `k${index}`)
const maps = '/api/v1/namespaces/default/configmaps'
const seed = Number(process.env.OARLOCK_TEST_SEED ?? Date.now() % 1e9)

// A seed reproduces the same choices.
const random = seededRandom(seed)
const below = (limit: number) => Math.floor(random() * limit)

const toVersion = ({ metadata, data }: Item): Version => ({
  revision: Number(metadata.resourceVersion),
  value: data?.value ?? '',
  uid: metadata.uid,
})

class Clients {
  readonly operations: Operation[] = []
  clock = 0
  acknowledged = 0
  isStopping = false
  #values = 0

  /** Runs one client, which reads and writes until the server is killed. */
  async write(server: ServerChild, onAcknowledged: () => void): Promise<void> {
    while (!this.isStopping) {
      const key = keys[below(keys.length)]!
      const current = await this.#perform(server, key, 'get', {})
      if (this.isStopping) return
      const choice = random()
      if (!current) await this.#perform(server, key, 'create', {})
      else if (choice < 0.45) await this.#perform(server, key, 'update', { basedOn: current.revision })
      else if (choice < 0.85) await this.#perform(server, key, 'patch', {})
      else if (choice < 0.95) await this.#perform(server, key, 'delete', { uid: current.uid })
      onAcknowledged()
    }
  }

  async #perform(server: ServerChild, key: string, type: Operation['type'], more: Partial<Operation>): Promise<Version | undefined> {
    const value = type === 'get' ? '' : `v${++this.#values}`
    const operation: Operation = { key, type, value, startedAt: this.clock++, result: 'unknown', ...more }
    this.operations.push(operation)
    const result = await this.#send(server, operation).catch(error => {
      if (!this.isStopping) throw error
      return undefined
    })
    if (!result) return undefined
    const { code, body } = result
    ok(code < 500, `${type} ${key}: ${code} ${JSON.stringify(body)}`)
    operation.endedAt = this.clock++
    const isDone = code < 300 || (type === 'get' && code === 404)
    operation.result = isDone ? 'done' : 'rejected'
    if (isDone && type !== 'get') this.acknowledged++
    if (code < 300 && type !== 'delete') operation.seen = toVersion(body)
    return operation.seen
  }

  #send(server: ServerChild, { type, key, value, basedOn, uid }: Operation) {
    const path = `${maps}/${key}`
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: key, ...(basedOn && { resourceVersion: String(basedOn) }) },
      data: { value },
    }
    switch (type) {
      case 'get':
        return server.call('GET', path)
      case 'create':
        return server.call('POST', maps, object)
      case 'update':
        return server.call('PUT', path, object)
      case 'patch':
        return server.call('PATCH', path, { data: { value } }, 'application/merge-patch+json')
      case 'delete':
        return server.call('DELETE', path, { preconditions: { uid } })
    }
  }
}

/** Resumes the previous watch; if its revision has expired, lists and watches again. Ends when the server is killed. */
async function listAndWatch(server: ServerChild, clients: Clients, logs: WatchLog[]): Promise<{ ended: Promise<void> }> {
  const last = logs.at(-1)
  const from = last && (last.events.at(-1)?.revision ?? last.revision)
  const listedAt = clients.clock++
  const { body: list } = await server.call('GET', maps)
  const listed = new Map<string, Version>(
    list.items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt').map(item => [item.metadata.name, toVersion(item)]),
  )
  const fresh: WatchLog = { revision: Number(list.metadata.resourceVersion), listed, events: [], listedAt }
  // The list is always recorded, because it is the state after the kill.
  logs.push(fresh)
  const resumed = from === undefined ? undefined : await openWatch(server, from)
  const readWatch = await openWatch(server, fresh.revision)
  const ended = (async () => {
    const isResumeExpired = resumed?.(() => {})
    ok(!(await readWatch(event => fresh.events.push(event))), 'the version of a list has not expired')
    if (last && (await isResumeExpired) === false) deepEqual(stateAfter(last), listed, 'the resumed watch has sent every change')
  })()
  return { ended }
}

function stateAfter({ listed, events }: WatchLog): Map<string, Version> {
  const state = new Map(listed)
  for (const { type, key, revision, value, uid } of events) {
    if (type === 'DELETED') state.delete(key)
    else state.set(key, { revision, value, uid })
  }
  return state
}

/** Opens a watch; the returned function reads it to its end and returns whether its revision had expired. */
async function openWatch(server: ServerChild, revision: number): Promise<(onEvent: (event: WatchedEvent) => void) => Promise<boolean>> {
  const watch = await server.watch(`${maps}?watch=1&resourceVersion=${revision}`)
  ok(watch.code === 200, `a watch from ${revision} got ${watch.code}`)
  return async onEvent => {
    for await (const line of watch.lines) {
      const { type, object } = JSON.parse(line) as { type: WatchedEvent['type'] | 'ERROR' | 'BOOKMARK'; object: Item & { code?: number } }
      if (type === 'ERROR') {
        ok(object.code === 410, line)
        return true
      }
      if (type !== 'BOOKMARK') onEvent({ type, key: object.metadata.name, ...toVersion(object) })
    }
    return false
  }
}

test(`SIGKILL at ${kills} random times with ${writers} writers: no acknowledged write is lost or repeated, and no watch has a gap (invariants 5, 6; seed ${seed})`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-kill-'))
  const clients = new Clients()
  const logs: WatchLog[] = []
  let server: ServerChild | undefined
  try {
    for (let round = 0; round <= kills; round++) {
      // In some rounds, a server is killed during startup first.
      if (round > 0 && random() < 0.15) {
        const child = spawnServer(dataDir)
        await sleep(below(600))
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      server = await startServerChild(dataDir)
      const running = server
      clients.isStopping = false
      const { ended } = await listAndWatch(running, clients, logs)
      if (round === kills) {
        clients.isStopping = true
        await running.kill()
        await ended
        break
      }
      const until = clients.acknowledged + 1 + below(300)
      const kill = async () => {
        if (clients.isStopping || clients.acknowledged < until) return
        clients.isStopping = true
        // After a random delay, so that the kill hits a commit, a response, or the time between them.
        for (let steps = below(4); steps > 0; steps--) await new Promise(setImmediate)
        await running.kill()
      }
      const killed = Promise.withResolvers<void>()
      const all = Array.from({ length: writers }, () =>
        clients.write(running, () => {
          if (!clients.isStopping && clients.acknowledged >= until) void kill().then(killed.resolve, killed.reject)
        }),
      )
      await Promise.all([...all, killed.promise, ended])
    }
    const violations = check(clients.operations, logs)
    deepEqual(violations, [], `seed ${seed}`)
    const events = logs.reduce((sum, log) => sum + log.events.length, 0)
    ok(clients.acknowledged > kills && events > 0)
    if (kills >= 100)
      console.log(`${kills} kills, ${clients.acknowledged} acknowledged writes, ${clients.operations.length} requests, ${events} events`)
  } finally {
    clients.isStopping = true
    await server?.kill()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
