import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { suggest } from './suggest.ts'

const words = ['stacks', 'runs', 'workers', 'workerpools', 'apply', 'approve']

for (const [typed, want] of [
  ['stcaks', 'stacks'],
  ['stack', 'stacks'],
  ['Runs', 'runs'],
  ['aply', 'apply'],
  ['aprove', 'approve'],
  ['workerpool', 'workerpools'],
  ['xyz', undefined],
  ['', undefined],
  ['secrets', undefined],
] as const) {
  test(`${JSON.stringify(typed)} suggests ${want ?? 'nothing'}`, () => equal(suggest(typed, words), want))
}
