/** The Kyma experiment with three operator processes that share the Kymas, of which one is killed at half time. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'

const runner = join(import.meta.dirname, '..', 'examples', 'kyma', 'run.ts')

test('kyma --shards 3 --restart: every Kyma succeeds, no component is created twice and no step is skipped', () => {
  const directory = makeDataDir()
  try {
    const file = join(directory, 'summary.json')
    const args = ['--kymas', '12', '--second', '200', '--shards', '3', '--restart', '--json', file]
    const { status, stderr } = spawnSync(process.execPath, [runner, ...args], { encoding: 'utf8', timeout: 240_000 })
    equal(status, 0, stderr)
    const { succeeded, createdTwice, stepsSkipped, seenTwice, stepsSeen, replicas, replicaRssMb } = JSON.parse(readFileSync(file, 'utf8'))
    deepEqual([succeeded, createdTwice, stepsSkipped, seenTwice, replicas], [12, 0, 0, 0, 3])
    equal(stepsSeen, 12 * 18 * 5)
    equal(replicaRssMb.split(' ').length, 3)
    ok(stderr.includes('/12 success  '), stderr)
  } finally {
    removeDirectory(directory)
  }
})

test('kyma --shards rejects what is not an integer from 1 to 62', () => {
  const { status, stderr } = spawnSync(process.execPath, [runner, '--shards', '0'], { encoding: 'utf8' })
  equal(status, 1)
  ok(stderr.includes('--shards must be an integer from 1 to 62, got "0"'), stderr)
})
