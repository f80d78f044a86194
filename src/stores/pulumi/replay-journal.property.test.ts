import { deepStrictEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Resource, UntypedDeployment } from './deployment.ts'
import { parseJournalEntry } from './journal-entry.ts'
import { replayJournal } from './replay-journal.ts'
import { splitJournalBatch } from './split-journal-batch.ts'

const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' }
const urnOf = (index: number) => `urn:pulumi:dev::app::a:b:C::r${index}`

/** What an engine does with one resource of its program, or of the base. Each may fail, or be cut off when the CLI is killed. */
const operation = fc.record({
  do: fc.constantFrom('same', 'create', 'update', 'delete', 'replace', 'deleteBeforeReplace', 'outputs', 'refresh', 'refreshGone'),
  isSuccessful: fc.boolean(),
})
const plan = fc.record({
  baseSize: fc.integer({ min: 0, max: 6 }),
  operations: fc.array(operation, { maxLength: 14 }),
  /** Which of the running operations makes its next step. */
  schedule: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
  /** The CLI is killed after this many entries. */
  killedAfter: fc.integer({ min: 0, max: 80 }),
  /** Sizes of the batches, and the order in which they are read. */
  batches: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 20 }),
  order: fc.infiniteStream(fc.nat()),
})
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never

/** What exists, by `<urn>#<revision>`, as an engine knows it: it has neither lists nor indexes. */
type World = Map<string, { delete?: true; pendingReplacement?: true }>
type Step = { entry: object; change: (world: World) => void; pending?: { begin?: string; end?: string } }

/** The entries of an update, each with what it changes in the world. Sequence ids are in the order of the steps. */
function simulate({ baseSize, operations, schedule, killedAfter }: Plan) {
  const stateOf = (index: number, revision: number): Resource => ({ urn: urnOf(index), type: 'a:b:C', custom: true, revision })
  const keyOf = (index: number, revision: number) => `${urnOf(index)}#${revision}`
  const threads = operations.map(({ do: what, isSuccessful }, index) => {
    const id = index * 10 + 1
    const isOld = index < baseSize
    const begin = (operationID: number, type: string): Step => ({
      entry: { kind: 0, operationID, operation: { type, resource: stateOf(index, 0) } },
      change: () => {},
      pending: { begin: `${operationID}` },
    })
    const end = (operationID: number, more: object, change: Step['change']): Step => ({
      entry: isSuccessful ? { kind: 1, operationID, ...more } : { kind: 2, operationID, ...more },
      change: isSuccessful ? change : () => {},
      pending: { end: `${operationID}` },
    })
    const add = (revision: number) => (world: World) => void world.set(keyOf(index, revision), {})
    const replaceWith = (from: number, to: number) => (world: World) => {
      world.delete(keyOf(index, from))
      add(to)(world)
    }
    if (!isOld) {
      const create = [begin(id, 'creating'), end(id, { state: stateOf(index, 1) }, add(1))]
      if (what === 'outputs' && isSuccessful)
        return [...create, { entry: { kind: 4, operationID: id + 1, removeNew: id, state: stateOf(index, 2) }, change: replaceWith(1, 2) }]
      if (what === 'delete' && isSuccessful)
        return [...create, begin(id + 1, 'deleting'), end(id + 1, { removeNew: id }, world => void world.delete(keyOf(index, 1)))]
      return create
    }
    switch (what) {
      case 'same':
      case 'update':
      case 'create':
        return [begin(id, 'updating'), end(id, { state: stateOf(index, 1), removeOld: index }, replaceWith(0, 1))]
      case 'outputs':
        return [{ entry: { kind: 4, operationID: id, removeOld: index, state: stateOf(index, 1) }, change: replaceWith(0, 1) }]
      case 'delete':
        return [begin(id, 'deleting'), end(id, { removeOld: index }, world => void world.delete(keyOf(index, 0)))]
      case 'replace': {
        const mark = (world: World) => {
          add(1)(world)
          world.set(keyOf(index, 0), { delete: true })
        }
        const create = [begin(id, 'creating'), end(id, { state: stateOf(index, 1), deleteOld: index }, mark)]
        if (!isSuccessful) return create
        return [...create, begin(id + 1, 'deleting'), end(id + 1, { removeOld: index }, world => void world.delete(keyOf(index, 0)))]
      }
      case 'deleteBeforeReplace': {
        const mark = (world: World) => void world.set(keyOf(index, 0), { pendingReplacement: true })
        const remove = [begin(id, 'deleting'), end(id, { pendingReplacementOld: index }, mark)]
        if (!isSuccessful) return remove
        return [...remove, begin(id + 1, 'creating'), end(id + 1, { state: stateOf(index, 1), removeOld: index }, replaceWith(0, 1))]
      }
      default: {
        const state = what === 'refresh' ? { state: stateOf(index, 1) } : {}
        const change: Step['change'] = what === 'refresh' ? replaceWith(0, 1) : world => void world.delete(keyOf(index, 0))
        const entry = { kind: isSuccessful ? 3 : 2, operationID: id, removeOld: index, isRefresh: true, ...state }
        return [
          { entry: { kind: 0, operationID: id }, change: () => {} },
          { entry, change: isSuccessful ? change : () => {} },
        ]
      }
    }
  })
  const world: World = new Map()
  for (let index = 0; index < baseSize; index++) world.set(keyOf(index, 0), {})
  const pending = new Set<string>()
  const entries: object[] = []
  for (let at = 0; entries.length < killedAfter; at++) {
    const running = threads.filter(steps => steps.length > 0)
    const step = running[schedule[at % schedule.length]! % running.length]?.shift() as Step | undefined
    if (step === undefined) break
    entries.push({ version: 1, sequenceID: entries.length + 1, ...step.entry })
    step.change(world)
    if (step.pending?.begin) pending.add(step.pending.begin)
    if (step.pending?.end) pending.delete(step.pending.end)
  }
  const resources = Array.from({ length: baseSize }, (_, index) => stateOf(index, 0))
  const base: UntypedDeployment = { version: 3, deployment: { manifest, resources } }
  return { base, entries, world, pending: pending.size }
}

/** As they arrive: in batches of any size, read in any order. */
function received(entries: readonly object[], { batches, order }: Plan): ReturnType<typeof parseJournalEntry>[] {
  const texts: string[] = []
  for (let at = 0, batch = 0; at < entries.length; batch++) {
    const size = batches[batch % batches.length]!
    texts.push(JSON.stringify({ entries: entries.slice(at, at + size) }))
    at += size
  }
  const ranks = texts.map(text => ({ text, rank: order.next().value as number })).sort((a, b) => a.rank - b.rank)
  return ranks.flatMap(({ text }) => splitJournalBatch(text)).map(({ value }) => parseJournalEntry(value))
}

test('every acknowledged resource is in the state exactly once, in any interleaving of operations and split into batches', () => {
  fc.assert(
    fc.property(plan, given => {
      const { base, entries, world, pending } = simulate(given)
      const before = JSON.stringify(base)
      const result = replayJournal(base, received(entries, given), { manifest })
      if (result.kind !== 'deployment') throw new Error(result.message)
      const resources = result.result.deployment.resources ?? []
      const marks = (mark: { delete?: unknown; pendingReplacement?: unknown }) => [mark.delete === true, mark.pendingReplacement === true]
      const found = resources.map(resource => [`${resource.urn}#${resource.revision}`, ...marks(resource)])
      const want = [...world].map(([key, mark]) => [key, ...marks(mark)])
      const byKey = (a: unknown[], b: unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1)
      deepStrictEqual(found.toSorted(byKey), want.toSorted(byKey))
      const current = resources.filter(resource => resource.delete !== true).map(({ urn }) => urn)
      equal(new Set(current).size, current.length, 'at most one of each URN is not marked for deletion')
      equal(result.pending.length, pending)
      equal(JSON.stringify(base), before, 'the base is not changed')
      const inOrder = replayJournal(
        base,
        entries.map(value => parseJournalEntry(value as Record<string, unknown>)),
        { manifest },
      )
      deepStrictEqual(result, inOrder)
    }),
    { numRuns: 500 },
  )
})
