import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '../../../test/support/virtual-clock.ts'
import type { RequestOptions, Response } from '../../kubernetes/client/index.ts'
import { DiscoveredScopes } from './discovered-scopes.ts'

/** The discovery of a server whose kinds change. */
class Home {
  readonly clock = new VirtualClock()
  readonly readsAtMs: number[] = []
  readonly kinds: Record<string, 'Namespaced' | 'Cluster'> = { pods: 'Namespaced' }
  isDown = false
  readonly scopes = new DiscoveredScopes({ request: options => this.#answer(options) }, this.clock)

  /** What it answers when all virtual time that it needs has passed. */
  async ask(group: string, plural: string): Promise<string | undefined> {
    const answer = this.scopes.scopeOf(group, plural)
    let isDone = false
    answer.then(
      () => (isDone = true),
      () => (isDone = true),
    )
    for (let round = 0; round < 40 && !isDone; round++) {
      await new Promise(resolve => setImmediate(resolve))
      if (!isDone) await this.clock.advance(50)
    }
    return await answer
  }

  async #answer({ path }: RequestOptions): Promise<Response> {
    if (path === '/apis') this.readsAtMs.push(this.clock.nowMs())
    if (this.isDown) throw new Error('connection refused')
    const of = (isCore: boolean) => Object.entries(this.kinds).filter(([kind]) => kind.includes('.') !== isCore)
    const items = of(path === '/api').map(([kind, scope]) => {
      const [resource = '', ...group] = kind.split('.')
      return { metadata: { name: group.join('.') }, versions: [{ version: 'v1', resources: [{ resource, scope }] }] }
    })
    const document = { kind: 'APIGroupDiscoveryList', items }
    return { status: 200, headers: {}, json: async () => document, text: async () => JSON.stringify(document) }
  }
}

test('known kinds are read once, and a kind that was created a moment ago is found', async () => {
  const home = new Home()
  equal(await home.ask('', 'pods'), 'Namespaced')
  equal(await home.ask('', 'pods'), 'Namespaced')
  equal(home.readsAtMs.length, 1)
  home.kinds['boats.harbor.example'] = 'Cluster'
  equal(await home.ask('harbor.example', 'boats'), 'Cluster')
  equal(home.readsAtMs.length, 2)
})

test('unknown kinds are looked for at most once a second, together', async () => {
  const home = new Home()
  await home.ask('', 'pods')
  const startMs = home.clock.nowMs()
  for (let round = 0; round < 3; round++)
    deepEqual(await Promise.all([1, 2, 3].map(number => home.ask('x.example', `things${number}`))), [undefined, undefined, undefined])
  const intervals = home.readsAtMs.slice(1).map((atMs, index) => atMs - (home.readsAtMs[index] ?? 0))
  equal(home.readsAtMs.length, 4)
  deepEqual(
    intervals.filter(ms => ms < 1_000),
    [],
  )
  equal(home.clock.nowMs() - startMs < 10_000, true)
})

test('with home down known kinds stay, and an unknown one is an error, not a missing kind', async () => {
  const home = new Home()
  await home.ask('', 'pods')
  home.isDown = true
  await home.clock.advance(60_000)
  equal(await home.ask('', 'pods'), 'Namespaced')
  await rejects(home.ask('x.example', 'things'), /the kinds of home cannot be read: connection refused/)
  home.isDown = false
  equal(await home.ask('x.example', 'things'), undefined)
})

test('a kind that has another scope than before is read again', async () => {
  const home = new Home()
  home.kinds['boats.harbor.example'] = 'Cluster'
  await home.ask('harbor.example', 'boats')
  home.kinds['boats.harbor.example'] = 'Namespaced'
  await home.clock.advance(31_000)
  await home.ask('harbor.example', 'boats')
  await home.clock.advance(1)
  equal(await home.ask('harbor.example', 'boats'), 'Namespaced')
})
