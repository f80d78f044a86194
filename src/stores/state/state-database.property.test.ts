import { deepStrictEqual, equal, ok, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { batch, created, type Entry, namesIn, stateOf } from './pulumi-journal.testing.ts'
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

const update = fc.integer({ min: 1, max: 3 })
/** Few, so that several updates of a Run follow each other. */
const pulumiEpoch = fc.integer({ min: 1, max: 3 })
const pulumiStep = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('append' as const), epoch: pulumiEpoch, update, count: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('appendAgain' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('complete' as const), epoch: pulumiEpoch, update }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('checkpoint' as const), epoch: pulumiEpoch, update }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('failedAppend' as const), epoch: pulumiEpoch, update }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replace' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lock' as const), epoch: pulumiEpoch, isAbandoned: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unlock' as const), epoch: pulumiEpoch }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userLock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('userUnlock' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
)
type PulumiStep = typeof pulumiStep extends fc.Arbitrary<infer T> ? T : never
type ModelJournal = { epoch: number; update: number; isOpen: boolean; version: number; base: string[]; names: string[]; last: Entry[] }

/** States as lists of names: what a journal has added comes first. */
class PulumiModel extends Model {
  journal: ModelJournal | undefined
  names: string[] | undefined
  /** Accepted versions of kind pulumi. */
  readonly accepted = new Map<number, string[]>()
  checkpoint: { epoch: number; update: number; version: number } | undefined
  #created = 0

  nextName(): string {
    return `r${++this.#created}`
  }

  mayWrite(runEpoch: number): boolean {
    return runEpoch >= this.minEpoch && (this.holder === undefined || this.holder === String(runEpoch))
  }

  compact(): void {
    if (!this.journal?.isOpen) return
    this.accepted.set(this.journal.version, this.names ?? [])
    this.journal.isOpen = false
  }

  /** Undefined: the update may have no entries any more. */
  journalOf(runEpoch: number, number: number): 'open' | 'new' | undefined {
    const { journal } = this
    if (journal?.epoch !== runEpoch || journal.update < number) return 'new'
    return journal.isOpen && journal.update === number ? 'open' : undefined
  }
}

function applyPulumi(database: StateDatabase, model: PulumiModel, next: Exclude<PulumiStep, { do: 'reopen' }>): void {
  const claim = (runEpoch: number, number: number) => ({ stackUid: 'uid', runName: `run-${runEpoch}`, epoch: runEpoch, update: number })
  const append = (runEpoch: number, number: number, entries: Entry[]) =>
    database.transaction(() => database.appendJournal({ ...claim(runEpoch, number), cliVersion: '', bytes: batch(...entries) }, 0))
  switch (next.do) {
    case 'lock':
    case 'unlock':
    case 'userLock':
    case 'userUnlock':
      apply(database, model, next)
      return
    case 'append': {
      const kind = model.journalOf(next.epoch, next.update)
      const before = kind === 'open' ? (model.journal?.names.length ?? 0) : 0
      const names = Array.from({ length: next.count }, () => model.nextName())
      const entries = names.map((name, index) => created(before + index + 1, name))
      const result = append(next.epoch, next.update, entries)
      const isAllowed = model.mayWrite(next.epoch) && kind !== undefined
      equal(result.kind, isAllowed ? 'accepted' : 'rejected')
      if (result.kind !== 'accepted') return
      if (kind === 'new') {
        model.compact()
        const { epoch: runEpoch, update: number } = next
        model.journal = {
          epoch: runEpoch,
          update: number,
          isOpen: true,
          version: result.version,
          base: model.names ?? [],
          names: [],
          last: [],
        }
      }
      const journal = model.journal as ModelJournal
      equal(result.version, journal.version)
      journal.names.push(...names)
      journal.last = entries
      model.names = [...journal.names, ...journal.base]
      model.raiseFence(next.epoch)
      return
    }
    case 'appendAgain': {
      // A batch whose response was lost.
      const { journal } = model
      if (!journal?.isOpen || !model.mayWrite(journal.epoch)) return
      deepStrictEqual(append(journal.epoch, journal.update, journal.last), { kind: 'accepted', version: journal.version })
      return
    }
    case 'failedAppend': {
      const fail = () => {
        database.appendJournal({ ...claim(next.epoch, next.update), cliVersion: '', bytes: batch(created(900, 'lost')) }, 0)
        database.pulumiFacts('uid')
        throw new Error('the disk is full')
      }
      throws(() => database.transaction(fail))
      return
    }
    case 'complete': {
      const kind = model.journalOf(next.epoch, next.update)
      const result = database.transaction(() => database.completeJournal(claim(next.epoch, next.update), 0))
      equal(result.kind, next.epoch >= model.minEpoch ? 'accepted' : 'rejected')
      const isOther = kind === 'new' && (model.holder === undefined || model.holder === String(next.epoch))
      if (result.kind !== 'accepted' || !(kind === 'open' || isOther)) return
      model.compact()
      if (isOther) model.journal = { epoch: next.epoch, update: next.update, isOpen: false, version: 0, base: [], names: [], last: [] }
      return
    }
    case 'checkpoint':
    case 'replace': {
      const names = [model.nextName()]
      const author = next.do === 'replace' ? { kind: 'User' as const, lockId: 'lock' } : run(next.epoch)
      const number = next.do === 'replace' ? undefined : next.update
      const request = { stackUid: 'uid', author, kind: 'pulumi' as const, bytes: stateOf(...names), update: number }
      const result = database.transaction(() => database.writeVersion(request, 0))
      equal(result.kind, (next.do === 'replace' ? model.holder === 'user' : model.mayWrite(next.epoch)) ? 'accepted' : 'rejected')
      if (result.kind !== 'accepted') return
      model.compact()
      if (next.do === 'checkpoint') {
        const replaced = model.checkpoint
        const isSame = replaced?.epoch === next.epoch && replaced.update === next.update
        if (replaced && isSame && Math.max(...model.accepted.keys()) === replaced.version) model.accepted.delete(replaced.version)
        model.checkpoint = { epoch: next.epoch, update: next.update, version: result.version }
        model.raiseFence(next.epoch)
      }
      model.accepted.set(result.version, names)
      model.names = names
    }
  }
}

test('every acknowledged journal entry is in the state, whatever comes after it (invariants 3, 5, 12)', () => {
  fc.assert(
    fc.property(fc.array(pulumiStep, { minLength: 15, maxLength: 60 }), steps => {
      const directory = mkdtempSync(join(tmpdir(), 'oarlock-journal-property-'))
      const open = () => new StateDatabase({ directory, key, limits: { versionsPerStack: 1_000, orphansPerStack } })
      let database = open()
      const model = new PulumiModel()
      try {
        for (const next of steps) {
          if (next.do === 'reopen') {
            database.close()
            database = open()
          } else applyPulumi(database, model, next)
          const read = (version?: number) => namesIn(database.readVersion({ stackUid: 'uid', version, kind: 'pulumi' })?.bytes)
          deepStrictEqual(read(), model.names)
          equal(database.pulumiFacts('uid')?.resources, model.names?.length)
          const isOpen = model.journal?.isOpen === true
          equal(database.openJournals, isOpen ? 1 : 0)
          const expected = new Map(model.accepted)
          if (isOpen) expected.set(model.journal?.version ?? 0, model.names ?? [])
          deepStrictEqual(
            database.versions('uid').map(({ version }) => version),
            [...expected.keys()].sort((a, b) => b - a),
          )
          for (const [version, names] of expected) deepStrictEqual(read(version), names)
          equal(database.newestPulumi('uid')?.version, expected.size === 0 ? undefined : Math.max(...expected.keys()))
        }
      } finally {
        database.close()
        rmSync(directory, { recursive: true, force: true })
      }
    }),
    { numRuns: 20 },
  )
})
