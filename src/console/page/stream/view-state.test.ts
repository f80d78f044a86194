import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { effect } from '@preact/signals'
import { SentView, viewDelta } from '../../projection/view-delta.ts'
import type { ViewDelta } from '../../protocol/index.ts'
import { ViewState } from './view-state.ts'

type Row = { readonly key: string; readonly value: number }

test('the page has what the server shows after every delta, and forgets rows when the server does', () => {
  const view = new ViewState<number, Row>('v', { kind: 'stacks' })
  const sent = new SentView()
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % below
  }
  for (let round = 0; round < 500; round++) {
    const rows = Array.from({ length: random(12) }, (_, at) => ({ key: `k${(at * 5 + random(3)) % 17}`, value: random(3) }))
    const unique = [...new Map(rows.map(row => [row.key, row])).values()]
    const isForbidden = random(10) === 0
    const content = isForbidden ? { error: { code: 'Forbidden', message: 'no' } as const } : { rows: unique, facts: random(4) }
    const delta = viewDelta('v', sent, content)
    if (delta) view.apply(JSON.parse(JSON.stringify(delta)) as ViewDelta)
    equal(view.error.value?.code, isForbidden ? 'Forbidden' : undefined)
    if (isForbidden) continue
    equal(view.facts.value, content.facts)
    deepEqual(
      view.order.value.map(key => view.row(key)?.value),
      unique,
    )
  }
})

test('a delta of one row changes the signal of no other row', () => {
  const view = new ViewState<number, Row>('v', { kind: 'stacks' })
  const rows = ['a', 'b'].map(key => ({ key, value: 0 }))
  view.apply({ type: 'view', id: 'v', whole: true, order: ['a', 'b'], rows, facts: 1 })
  const seen: string[] = []
  for (const key of ['a', 'b']) effect(() => void seen.push(`${key}${view.row(key)?.value.value}`))
  view.apply({ type: 'view', id: 'v', whole: false, rows: [{ key: 'b', value: 5 } as Row] })
  deepEqual(seen, ['a0', 'b0', 'b5'])
})
