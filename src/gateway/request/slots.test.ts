import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { Slots } from './slots.ts'

test('as many as there are slots run at a time, in order, also after a failure, and one that takes long does not hold the others', async () => {
  const slots = new Slots(2, 20)
  const log: string[] = []
  const first = Promise.withResolvers<void>()
  const task = (name: string, until?: Promise<void>) => async () => {
    log.push(name)
    await until
    if (name === 'b') throw new Error('b fails')
    return name
  }
  const running = [slots.run(task('a', first.promise)), slots.run(task('b')), slots.run(task('c')), slots.run(task('d'))]
  deepEqual(log, ['a', 'b'])
  await rejects(running[1] as Promise<string>, /b fails/)
  deepEqual([await running[2], await running[3]], ['c', 'd'])
  // `a` holds its slot for 20 ms only.
  const never = new Promise<void>(() => {})
  void slots.run(task('e', never))
  deepEqual(await slots.run(task('f')), 'f')
  first.resolve()
  deepEqual(await running[0], 'a')
})
