import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { type ListRight, Visibility } from './visibility.ts'

const user = { name: 'anna', groups: ['web'] }

/** A user with these rights, each `resource` or `resource in namespace`; they may change, and so may the time. */
function visibility(...allowed: string[]) {
  const rights = new Set(allowed)
  const asked: string[] = []
  const clock = { ms: 1_000 }
  const of = ({ resource, namespace }: ListRight) => (namespace === undefined ? resource : `${resource} in ${namespace}`)
  const isAllowed = async (_: unknown, right: ListRight) => {
    asked.push(of(right))
    return rights.has(of(right))
  }
  return { rights, asked, clock, visible: new Visibility(user, isAllowed, () => clock.ms) }
}

test('a user sees the rows of all namespaces, of some, or none', async () => {
  const { visible, asked } = visibility('stacks', 'runs in a', 'leases in oarlock-system')
  deepEqual(await visible.of('stacks', () => ['a', 'b']), { all: true })
  deepEqual(await visible.of('runs', () => ['a', 'b']), { all: false, namespaces: new Set(['a']) })
  deepEqual(await visible.of('workers', () => ['a', 'b']), { all: false, namespaces: new Set() })
  deepEqual(await visible.of('controllers', () => []), { all: true })
  await visible.of('queue', () => ['a', 'b'])
  equal(asked.length, 6, 'of one period each right is asked for once')
})

test('a right that was revoked is asked for again in the next period, in which everything is computed again', async () => {
  const { visible, rights, clock } = visibility('stacks')
  const first = visible.period
  clock.ms += 14_999
  deepEqual(await visible.of('stacks', () => []), { all: true })
  rights.delete('stacks')
  equal(visible.period, first)
  clock.ms += 1
  equal(visible.period, first + 1)
  deepEqual(await visible.of('stacks', () => []), { all: false, namespaces: new Set() })
})

test('what the API server did not decide is asked again', async () => {
  let failures = 1
  const visible = new Visibility(user, async () => {
    if (failures-- > 0) throw new Error('unavailable')
    return true
  })
  await rejects(
    visible.of('stacks', () => []),
    /unavailable/,
  )
  deepEqual(await visible.of('stacks', () => []), { all: true })
})
