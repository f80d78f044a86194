/**
 * Random journals, and the states in which Pulumi's own `backend.JournalReplayer` results for them: recorded with a program that links the packages of the
 * CLI's source (3.260.0, commit 1b594989), one case for each line. The kinds of all entries occur, and journals that were cut off.
 */
import { deepEqual, equal } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Deployment, UntypedDeployment } from './deployment.ts'
import { parseJournalEntry } from './journal-entry.ts'
import { replayJournal } from './replay-journal.ts'

type Case = { base: Deployment; entries: Record<string, unknown>[]; replayed: UntypedDeployment }

const file = join(import.meta.dirname, 'testdata', 'replayed-by-pulumi-3.260.jsonl')
const cases = readFileSync(file, 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Case)
const manifest = { time: '', magic: '', version: '' }

test(`${cases.length} recorded journals result in the same states`, () => {
  const kinds = new Set(cases.flatMap(({ entries }) => entries.map(({ kind }) => kind)))
  equal(kinds.size, 10)
  for (const [index, { base, entries, replayed }] of cases.entries()) {
    const result = replayJournal({ version: 3, deployment: base }, entries.map(parseJournalEntry), { manifest })
    if (result.kind !== 'deployment') throw new Error(`case ${index}: ${result.message}`)
    deepEqual(comparable(result.result.deployment), comparable(replayed.deployment), `case ${index}`)
    deepEqual(features(result.result), features(replayed), `case ${index}`)
  }
})

/** `replaceWith` is not compared: Pulumi lists it for references that a refresh has removed. */
const features = (state: UntypedDeployment) => (state.features ?? []).filter(name => name !== 'replaceWith')

/** Without the manifest, which has the time, and without what Go's encoder omits. Pending operations have no order: they are those of a Go map. */
function comparable(deployment: Deployment | null): unknown {
  const { manifest: _, pending_operations: operations, ...others } = deployment ?? {}
  const pending = (operations ?? []).map(operation => JSON.stringify(withoutEmpty(operation))).sort()
  return withoutEmpty({ ...others, pending })
}

const references = new Set([
  'dependencies',
  'propertyDependencies',
  'replaceWith',
  'aliases',
  'metadata',
  'snippets',
  'resources',
  'p',
  'q',
])

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, item]) => [name, withoutEmpty(item)] as const)
    .filter(([name, item]) => {
      if (item === undefined || item === null || item === false || item === '') return false
      return !(references.has(name) && typeof item === 'object' && Object.keys(item).length === 0)
    })
  return Object.fromEntries(kept)
}
