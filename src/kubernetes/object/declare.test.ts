import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import library from 'typebox'
import { Type as ours } from './declare.ts'

/** The same declaration, written with either implementation. */
const declare = (Type: typeof ours) =>
  Type.Object(
    {
      name: Type.String({ minLength: 1, description: 'a name' }),
      size: Type.Optional(Type.Integer({ minimum: 0, default: 1 })),
      ratio: Type.Number(),
      on: Type.Optional(Type.Boolean()),
      colour: Type.Enum(['red', 'blue'], { default: 'red' }),
      anything: Type.Unknown(),
      list: Type.Optional(Type.Array(Type.Object({ key: Type.String() }), { minItems: 1 })),
      map: Type.Record(Type.String(), Type.String(), { description: 'by key' }),
      empty: Type.Object({ all: Type.Optional(Type.String()) }),
    },
    { description: 'everything our kinds use' },
  )

test('creates the same declarations as TypeBox', () => {
  const json = (schema: unknown) => JSON.parse(JSON.stringify(schema, (key, value) => (key === '~optional' ? undefined : value)))
  deepEqual(json(declare(ours)), json(declare(library as unknown as typeof ours)))
})
