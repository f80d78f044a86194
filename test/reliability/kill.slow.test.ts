import { deepEqual, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { check, type Operation, type Version, type WatchedEvent, type WatchLog } from './history.ts'
import { type Item, type ServerChild, spawnServer, startServerChild } from './server-child.ts'

/** 200 in the full run: OARLOCK_TEST_KILLS=200 node --test test/reliability/kill.slow.test.ts */
const kills = Number(process.env.OARLOCK_TEST_KILLS ?? 12)
const writers = 64
const keys = Array.from({ length: 24 }, (_, index) => `k${index}`)
const maps = '/api/v1/namespaces/default/configmaps'
const seed = Number(process.env.OARLOCK_TEST_SEED ?? Date.now() % 1e9)

/** A small generator (mulberry32), so that a seed reproduces the same choices. */
function makeRandom(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
const random = makeRandom(seed)
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
  isOver = false
  #values = 0

  /** One client: reads and writes until the server is killed. */
  async write(server: ServerChild, onAcknowledged: () => void): Promise<void> {
    while (!this.isOver) {
      const key = keys[below(keys.length)]!
      const current = await this.#perform(server, key, 'get', {})
      if (this.isOver) return
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
    const operation: Operation = { key, type, value, beganAt: this.clock++, result: 'unknown', ...more }
    this.operations.push(operation)
    const answer = await this.#send(server, operation).catch(error => {
      if (!this.isOver) throw error
      return undefined
    })
    if (!answer) return undefined
    const { code, body } = answer
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

/** Watches from the end of the last watch, or, when that version has expired, lists and watches from there, until the server is killed. */
async function follow(server: ServerChild, clients: Clients, logs: WatchLog[]): Promise<{ ended: Promise<void> }> {
  const last = logs.at(-1)
  const from = last && (last.events.at(-1)?.revision ?? last.revision)
  const listedAt = clients.clock++
  const { body: list } = await server.call('GET', maps)
  const listed = new Map<string, Version>(
    list.items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt').map(item => [item.metadata.name, toVersion(item)]),
  )
  const fresh: WatchLog = { revision: Number(list.metadata.resourceVersion), listed, events: [], listedAt }
  // The list is recorded in any case: it is the state after the kill.
  logs.push(fresh)
  const again = from === undefined ? undefined : await openWatch(server, from)
  const readWatch = await openWatch(server, fresh.revision)
  const ended = (async () => {
    const isResumeExpired = again?.(() => {})
    ok(!(await readWatch(event => fresh.events.push(event))), 'the version of a list has not expired')
    if (last && (await isResumeExpired) === false) deepEqual(stateAfter(last), listed, 'a resumed watch has missed nothing')
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
  ok(watch.code === 200, `a watch from ${revision} was answered with ${watch.code}`)
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

test(`kill -9 at ${kills} random points during ${writers} writers: no acknowledged write is lost or repeated, watches have no gap (invariants 5, 6; seed ${seed})`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-kill-'))
  const clients = new Clients()
  const logs: WatchLog[] = []
  let server: ServerChild | undefined
  try {
    for (let round = 0; round <= kills; round++) {
      // Sometimes it is killed during startup.
      if (round > 0 && random() < 0.15) {
        const child = spawnServer(dataDir)
        await sleep(below(600))
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      server = await startServerChild(dataDir)
      const running = server
      clients.isOver = false
      const { ended } = await follow(running, clients, logs)
      if (round === kills) {
        clients.isOver = true
        await running.kill()
        await ended
        break
      }
      const until = clients.acknowledged + 1 + below(300)
      const kill = async () => {
        if (clients.isOver || clients.acknowledged < until) return
        clients.isOver = true
        // After a random delay, so that the kill hits a commit, a response, or the time between them.
        for (let steps = below(4); steps > 0; steps--) await new Promise(setImmediate)
        await running.kill()
      }
      const killed = Promise.withResolvers<void>()
      const all = Array.from({ length: writers }, () =>
        clients.write(running, () => {
          if (!clients.isOver && clients.acknowledged >= until) void kill().then(killed.resolve, killed.reject)
        }),
      )
      await Promise.all([...all, killed.promise, ended])
    }
    const faults = check(clients.operations, logs)
    deepEqual(faults, [], `seed ${seed}`)
    const events = logs.reduce((sum, log) => sum + log.events.length, 0)
    ok(clients.acknowledged > kills && events > 0)
    if (kills >= 100)
      console.log(`${kills} kills, ${clients.acknowledged} acknowledged writes, ${clients.operations.length} requests, ${events} events`)
  } finally {
    clients.isOver = true
    await server?.kill()
    rmSync(dataDir, { recursive: true, force: true })
  }
})
