import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { type ControllerFigures, controllerFiguresOf, publishControllerFigures } from './controller-figures.ts'
import { annotations } from './names.ts'

const stack: ControllerFigures = { name: 'stack', reconciles: 100, errors: 2, queued: 0, p50Ms: 25, p99Ms: 300 }
const read = (text: string) =>
  controllerFiguresOf({ metadata: { name: 'a', annotations: { [annotations.controllerFigures]: text } } as never })

test('what a process publishes about its controllers is read again', () => {
  const idle: ControllerFigures = { name: 'pool', reconciles: 0, errors: 0, queued: 0 }
  const published = publishControllerFigures([stack, idle])
  deepEqual(controllerFiguresOf({ metadata: { name: 'a', annotations: published } as never }), [stack, idle])
  deepEqual(controllerFiguresOf({ metadata: { name: 'a' } as never }), [])
})

for (const text of [
  '',
  'null',
  '{}',
  '[',
  '"a"',
  '[1,null,{}]',
  JSON.stringify([{ ...stack, name: '' }]),
  JSON.stringify([{ ...stack, reconciles: '1' }]),
  `[${'[],'.repeat(40_000)}1]`,
])
  test(`what is no list of controllers has none: ${text.slice(0, 30)}`, () => deepEqual(read(text), []))

test('a number that is not valid is left out, and of many controllers the first 100 are read', () => {
  deepEqual(read(JSON.stringify([{ ...stack, p50Ms: -1, p99Ms: '3', more: true }])), [
    { name: 'stack', reconciles: 100, errors: 2, queued: 0 },
  ])
  deepEqual(read(JSON.stringify(Array.from({ length: 200 }, (_, index) => ({ ...stack, name: `c${index}` })))).length, 100)
})
