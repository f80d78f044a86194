import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { SendBufferLimiter } from './send-buffer-limiter.ts'

function outlets(lengths: Record<string, number>, backlogs: SendBufferLimiter) {
  const cut: string[] = []
  const all = Object.entries(lengths).map(([name, writableLength]) => ({ name, writableLength, destroy: () => cut.push(name) }))
  for (const outlet of all) backlogs.add(outlet)
  return {
    cut,
    set: (name: string, length: number) => Object.assign(all.find(outlet => outlet.name === name)!, { writableLength: length }),
  }
}

test('together they may not hold more than there is room for: the longest go', () => {
  const backlogs = new SendBufferLimiter({ totalBytes: 100 })
  const { cut, set } = outlets({ a: 10, b: 60, c: 30, d: 0 }, backlogs)
  backlogs.sweep()
  deepEqual(cut, [])
  set('a', 20)
  backlogs.sweep()
  deepEqual(cut, ['b'])
  backlogs.sweep()
  deepEqual(cut, ['b'])
})

test('who takes nothing for long goes; who takes something now and then, or has taken all, stays', () => {
  const backlogs = new SendBufferLimiter({ stalledSweeps: 3 })
  const { cut, set } = outlets({ stuck: 10, growing: 10, slow: 100, quiet: 0 }, backlogs)
  for (let i = 0; i < 9; i++) {
    set('growing', 11 + i)
    if (i % 2 === 0) set('slow', 90 - i)
    backlogs.sweep()
  }
  deepEqual(cut.sort(), ['growing', 'stuck'])
})
