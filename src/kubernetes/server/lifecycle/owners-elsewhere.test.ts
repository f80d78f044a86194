import { deepEqual, equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type OwnerElsewhere, OwnersElsewhere } from './owners-elsewhere.ts'

const intervalMs = 30_000
const owner = (uid: string, table = 'issuers.example.com'): OwnerElsewhere => ({
  ...{ table, plural: 'issuers', apiVersion: 'example.com/v1', kind: 'Issuer', name: `name-${uid}`, uid },
})

/** Rounds run when the returned function is called. */
function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const known = { existing: new Set<string>(), dependents: new Set<string>(), isReachable: true }
  const asked: string[] = []
  const absent: string[] = []
  const errors: string[] = []
  const owners = new OwnersElsewhere({
    elsewhere: ({ table }) => (table === 'local' ? undefined : table === 'owned' ? 'unknown' : 'lookUp'),
    async exists({ uid }) {
      asked.push(uid)
      if (!known.isReachable) throw new Error('home does not answer')
      return known.existing.has(uid)
    },
    hasDependents: uid => known.dependents.has(uid),
    onAbsent: uids => void absent.push(...uids),
    onError: (_, message) => void errors.push(message),
    intervalMs,
  })
  t.after(() => owners.stop())
  const round = async () => {
    t.mock.timers.tick(intervalMs)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { owners, known, asked, absent, errors, round }
}

test('an owner that exists in another partition is kept, and asked for until it does not', async t => {
  const { owners, known, asked, absent, round } = start(t)
  known.existing.add('a')
  known.dependents.add('a')
  equal(owners.mayExist(owner('a')), true)
  await round()
  await round()
  deepEqual([asked, absent], [['a', 'a'], []])
  known.existing.delete('a')
  await round()
  deepEqual(absent, ['a'])
  equal(owners.mayExist(owner('a')), false)
})

test('what is not known exists: while home does not answer nothing is absent, and a round ends after three questions', async t => {
  const { owners, known, asked, absent, errors, round } = start(t)
  for (const uid of ['a', 'b', 'c', 'd', 'e']) {
    known.dependents.add(uid)
    owners.mayExist(owner(uid))
  }
  known.isReachable = false
  await round()
  await round()
  // Those that were not asked for come first in the next round.
  deepEqual([asked, absent, errors.length], [['a', 'b', 'c', 'd', 'e', 'a'], [], 6])
  equal(owners.mayExist(owner('b')), true)
  known.isReachable = true
  await round()
  deepEqual(absent.toSorted(), ['a', 'b', 'c', 'd', 'e'])
})

test('an owner without dependents is not asked for, and one that was deleted here is absent immediately', async t => {
  const { owners, known, asked, absent, round } = start(t)
  known.dependents.add('a')
  owners.mayExist(owner('a'))
  owners.mayExist(owner('b'))
  known.dependents.add('c')
  owners.deleted('c')
  owners.deleted('d')
  equal(owners.mayExist(owner('c')), false)
  // It had no dependents.
  equal(owners.mayExist(owner('d')), true)
  known.dependents.delete('a')
  await round()
  deepEqual([asked, absent], [[], []])
})

test('of a kind whose objects are all here, what is stored decides', t => {
  const { owners } = start(t)
  equal(owners.mayExist(owner('a', 'local')), false)
})

test('of a kind whose objects cannot be found, an owner exists until it is deleted here', async t => {
  const { owners, known, asked, absent, round } = start(t)
  known.dependents.add('a')
  equal(owners.mayExist(owner('a', 'owned')), true)
  await round()
  deepEqual([asked, absent], [[], []])
  owners.deleted('a')
  equal(owners.mayExist(owner('a', 'owned')), false)
})

test('a reference with a wrong name says nothing about the owner that has the UID', async t => {
  const { absent, round } = start(t)
  const right = owner('a')
  const wrong = { ...right, name: 'wrong' }
  const exists: string[] = []
  const other = new OwnersElsewhere({
    elsewhere: () => 'lookUp',
    exists: async ({ name }) => name !== 'wrong',
    hasDependents: () => true,
    onAbsent: uids => void exists.push(...uids),
    onError() {},
    intervalMs,
  })
  t.after(() => other.stop())
  for (const each of [wrong, right]) equal(other.mayExist(each), true)
  await round()
  deepEqual([exists, absent], [['a'], []])
  deepEqual([other.mayExist(wrong), other.mayExist(right)], [false, true])
})
