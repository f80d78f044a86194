import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { JsonObject, ManagedFieldsEntry } from '../object/object.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { applyServerSide, trackUpdate } from './index.ts'

/**
 * Random scenarios of applies and updates with the results of sigs.k8s.io/structured-merge-diff/v6 v6.3.0, the library
 * inside kube-apiserver (recorded from its merge.Updater; 138,000 further steps from other seeds agreed when this was written).
 * One difference is intentional: a container without remaining members stays empty, where upstream leaves null.
 */
type Step = { op: 'apply' | 'update'; manager: string; force: boolean; object: JsonObject; want: Expected }
type Expected = { conflicts?: string[]; live: JsonObject; managers: Record<string, JsonObject> }

const scalar: StructuralSchema = { 'x-kubernetes-int-or-string': true }
const sub: StructuralSchema = { type: 'object', properties: { a: scalar, b: scalar } }
sub.properties!.s = sub
const schema: StructuralSchema = {
  type: 'object',
  properties: {
    a: scalar,
    s: sub,
    m: { type: 'object', additionalProperties: scalar },
    l: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items: { type: 'object', properties: { k: scalar, a: scalar, b: scalar } },
    },
    t: { type: 'array', 'x-kubernetes-list-type': 'set', items: scalar },
    x: { type: 'array', items: scalar },
  },
}

const emptyAlike = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll(':null', ':{}').replaceAll(':[]', ':{}'))
const lines = readFileSync(new URL('fixtures/structured-merge-diff.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')

for (const [index, line] of lines.entries()) {
  const { typed, steps } = JSON.parse(line) as { typed: boolean; steps: Step[] }
  test(`structured-merge-diff scenario ${index}, ${typed ? 'with a schema' : 'deduced'}`, () => {
    let live: JsonObject | undefined
    for (const [at, { op, manager, force, object, want }] of steps.entries()) {
      const common = { manager, schema: typed ? schema : undefined, apiVersion: 'v1', nowMs: at * 1_000 }
      let conflicts: string[] | undefined
      if (op === 'apply') {
        const result = applyServerSide({ ...common, force, live, applied: { metadata: { name: 'n' }, ...object } })
        if (result.conflicts.length === 0) live = result.object
        else conflicts = result.conflicts.map(({ manager: who, field }) => `${JSON.parse(who.replace(/ using.*/, ''))} ${field}`).sort()
      } else {
        const metadata = { ...(live?.metadata as JsonObject | undefined), name: 'n' }
        const managedFields = trackUpdate({ ...common, before: live, after: { ...object, metadata } })
        live = { ...object, metadata: { name: 'n', managedFields: managedFields as unknown as JsonObject[] } }
      }
      const { metadata, ...fields } = live ?? { metadata: {} }
      const entries = ((metadata as JsonObject).managedFields ?? []) as unknown as ManagedFieldsEntry[]
      const managers = Object.fromEntries(entries.map(entry => [entry.manager, entry.fieldsV1]))
      assert.deepEqual(conflicts, want.conflicts, `conflicts of step ${at}`)
      assert.deepEqual(emptyAlike({ fields, managers }), emptyAlike({ fields: want.live, managers: want.managers }), `step ${at}`)
    }
  })
}
