import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { connectionLimits } from './connection-limits.ts'

const values = (openFiles: number) => {
  const { server, plain } = connectionLimits(openFiles)
  return [server, plain].map(({ unauthenticated, authenticated, perUser }) => [unauthenticated, authenticated, perUser])
}

test('connections take at most half of the files, and at most what 30,000 watches need', () => {
  const most = [
    [2_000, 33_000, 17_500],
    [250, 750, 500],
  ]
  deepEqual(values(Number.POSITIVE_INFINITY), most)
  deepEqual(values(1_048_576), most)
  deepEqual(values(2_048), [
    [224, 672, 448],
    [32, 96, 64],
  ])
  for (const openFiles of [64, 256, 1_024, 2_048, 20_000, 65_536]) {
    const [server = [], plain = []] = values(openFiles)
    ok([server[0], server[1], plain[0], plain[1]].reduce((sum = 0, each = 0) => sum + each, 0)! <= openFiles / 2, `${openFiles}`)
  }
})

test('a process that may open few files can still accept a connection of each kind', () => {
  for (const openFiles of [0, 1, 8, 20]) for (const each of values(openFiles).flat()) ok(each >= 1, `${openFiles}`)
})
