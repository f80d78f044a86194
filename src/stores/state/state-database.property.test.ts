import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { StateDatabase } from './state-database.ts'

const key = Buffer.alloc(32, 7)
const run = (epoch: number) => ({ kind: 'Run' as const, runName: `run-${epoch}`, epoch })
const user = { kind: 'User' as const, id: 'lock', who: 'ada@host', info: { ID: 'lock' } }

const epoch = fc.integer({ min: 1, max: 6 })
const content = fc.integer({ min: 0, max: 5 })
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), epoch, content }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lock' as const), epoch, isAbandoned: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('unlock' as const), epoch }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userLock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userWrite' as const), content }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userUnlock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const orphansPerStack = 3

/** A naive implementation of the rules, which remembers the whole history and is compared with the database after each step. */
class Model {
  holder: string | undefined
  minEpoch = 0
  maxEpoch = 0
  current: string | undefined
  readonly contents = new Map<number, string>()
  readonly orphaned = new Set<number>()

  raiseFence(runEpoch: number): void {
    this.minEpoch = Math.max(this.minEpoch, runEpoch)
    this.maxEpoch = Math.max(this.maxEpoch, runEpoch)
  }
}

function apply(database: StateDatabase, model: Model, next: Exclude<Step, { do: 'reopen' }>): void {
  const { holder } = model
  switch (next.do) {
    case 'lock': {
      const abandonedHolder = next.isAbandoned && holder !== undefined && holder !== 'user' ? run(Number(holder)) : undefined
      const result = database.transaction(() => database.lock({ stackUid: 'uid', holder: run(next.epoch), abandonedHolder }, 0))
      const isFree = holder === undefined || holder === String(next.epoch) || abandonedHolder !== undefined
      equal(result.kind, isFree && next.epoch >= model.minEpoch ? 'granted' : 'rejected')
      if (result.kind !== 'granted') return
      model.holder = String(next.epoch)
      model.raiseFence(next.epoch)
      return
    }
    case 'userLock': {
      const result = database.transaction(() => database.lock({ stackUid: 'uid', holder: user }, 0))
      equal(result.kind, holder === undefined || holder === 'user' ? 'granted' : 'rejected')
      if (result.kind !== 'granted') return
      model.holder = 'user'
      model.minEpoch = model.maxEpoch + 1
      return
    }
    case 'unlock':
    case 'userUnlock': {
      const [name, claim] = next.do === 'unlock' ? [String(next.epoch), run(next.epoch)] : ['user', user]
      const result = database.transaction(() => database.unlock({ stackUid: 'uid', holder: claim }))
      equal(result.kind, holder === undefined ? 'free' : holder === name ? 'released' : 'rejected')
      if (holder === name) model.holder = undefined
      return
    }
    case 'write':
    case 'userWrite': {
      const text = `content ${next.content}`
      const author = next.do === 'write' ? run(next.epoch) : { kind: 'User' as const, lockId: 'lock' }
      const request = { stackUid: 'uid', author, kind: 'terraform' as const, bytes: Buffer.from(text) }
      const result = database.transaction(() => database.writeVersion(request, 0))
      const isAllowed =
        next.do === 'write' ? next.epoch >= model.minEpoch && (holder === undefined || holder === String(next.epoch)) : holder === 'user'
      equal(result.kind, isAllowed ? 'accepted' : 'rejected')
      if (result.kind === 'accepted') {
        model.current = text
        model.contents.set(result.version, text)
        if (next.do === 'write') model.raiseFence(next.epoch)
      } else {
        model.contents.set(result.orphan, text)
        model.orphaned.add(result.orphan)
      }
    }
  }
}

function compare(database: StateDatabase, { current, contents, orphaned }: Model): void {
  const read = (version?: number) => {
    const stored = database.readVersion({ stackUid: 'uid', version, kind: 'terraform' })
    return stored && Buffer.from(stored.bytes).toString()
  }
  equal(read(), current)
  for (const { version } of database.versions('uid')) {
    ok(!orphaned.has(version))
    equal(read(version), contents.get(version))
  }
  const orphans = database.orphans('uid').map(({ version }) => version)
  deepStrictEqual(orphans, [...orphaned].sort((a, b) => b - a).slice(0, orphansPerStack))
  for (const version of orphans) equal(read(version), contents.get(version))
  equal(database.stats().droppedOrphans, orphaned.size - orphans.length)
}

test('an older epoch is never current, its content is stored as an orphan, and acknowledged writes survive (invariants 3, 4, 5)', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), steps => {
      const directory = mkdtempSync(join(tmpdir(), 'oarlock-state-property-'))
      const open = () => new StateDatabase({ directory, key, limits: { orphansPerStack } })
      let database = open()
      const model = new Model()
      try {
        for (const next of steps) {
          if (next.do === 'reopen') {
            database.close()
            database = open()
          } else apply(database, model, next)
          compare(database, model)
        }
      } finally {
        database.close()
        rmSync(directory, { recursive: true, force: true })
      }
    }),
    { numRuns: 30 },
  )
})
