import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { type ControllerFigures, controllerFiguresOf, publishControllerFigures } from './controller-figures.ts'
import { annotations } from './names.ts'

const stack: ControllerFigures = { name: 'stack', reconciles: 100, errors: 2, queued: 0, p50Ms: 25, p99Ms: 300 }
const read = (text: string) =>
  controllerFiguresOf({ metadata: { name: 'oarlock-controller', annotations: { [annotations.controllerFigures]: text } } as never })

test('what a process publishes about its controllers is read again', () => {
  const idle: ControllerFigures = { name: 'pool', reconciles: 0, errors: 0, queued: 0 }
  const published = publishControllerFigures([stack, idle])
  deepEqual(controllerFiguresOf({ metadata: { name: 'oarlock-controller', annotations: published } as never }), [stack, idle])
  deepEqual(controllerFiguresOf({ metadata: { name: 'oarlock-controller' } as never }), [])
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

for (const [name, count] of [
  ['oarlock-controller', 1],
  ['oarlock-stacks-0', 1],
  ['oarlock-stacks-61', 1],
  ['oarlock-stacks-ring', 0],
  ['oarlock-controller-2', 0],
  ['worker-1', 0],
] as const)
  test(`the Lease ${name} ${count ? 'may' : 'may not'} report controllers: a worker may write its own Lease`, () =>
    deepEqual(controllerFiguresOf({ metadata: { name, annotations: publishControllerFigures([stack]) } as never }).length, count))

test('a name that could pass for another one, and a number that is no count, are not valid', () => {
  for (const wrong of [{ name: 'stack\u202e' }, { name: 'x'.repeat(254) }, { errors: 1e308 }, { queued: 0.5 }])
    deepEqual(read(JSON.stringify([{ ...stack, ...wrong }])), [])
})
