import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { PrintedLines, PulumiCli } from './pulumi-cli.ts'

/** A program in place of the CLI. */
async function setUp(t: TestContext, script: string) {
  const harness = await createEngineHarness(t, {})
  const path = join(harness.root, 'pulumi')
  writeFileSync(path, `#!/bin/sh\n[ "$1" = version ] && { echo v3.260.0; exit; }\n${script}\n`)
  chmodSync(path, 0o755)
  return { ...harness, context: harness.context, cli: new PulumiCli({ PULUMI_BIN: path }) }
}

test('a command starts after beforeStart has resolved, with the pid that it got, and its arguments', async t => {
  const { cli, context, log } = await setUp(t, 'echo "$$ $*"; exit 3')
  const calls: string[] = []
  const result = await cli.run(context, {
    ...{ args: ['up', '--stack=a b'], env: {} },
    beforeStart: async pid => {
      await new Promise(resolve => setTimeout(resolve, 200))
      calls.push(`${pid} ${log.length}`)
    },
  })
  equal(result.exitCode, 3)
  deepEqual(
    calls.map(each => `${each.split(' ')[0]} up --stack=a b`),
    log,
  )
  match(calls[0] ?? '', / 0$/)
  // A second one waits again.
  await cli.run(context, { args: ['up'], env: {}, isQuiet: true, beforeStart: async pid => void calls.push(String(pid)) })
  equal(calls.length, 2)
})

test('a command whose beforeStart rejects does not start', async t => {
  const { cli, context, log } = await setUp(t, 'echo started')
  const run = cli.run(context, { args: ['up'], env: {}, beforeStart: async () => Promise.reject(new Error('not stored')) })
  await rejects(run, /not stored/)
  deepEqual(log, [])
})

test('a Run that is interrupted while a command waits ends it', async t => {
  const { cli, context, abort, log } = await setUp(t, 'echo started')
  const run = cli.run(context, {
    ...{ args: ['up'], env: {} },
    beforeStart: async () => {
      abort.abort()
      await new Promise(() => {})
    },
  })
  equal((await run).exitCode === 0, false)
  deepEqual(log, [])
})

test('printed lines are limited in bytes, with their ends, and in number', () => {
  const printed = (lines: string[], maxBytes: number, maxLines: number) => {
    const kept = new PrintedLines(maxBytes, maxLines)
    for (const line of lines) kept.add(line)
    return kept.lines
  }
  deepEqual(printed(['', '', ''], 2, 10), ['', ''])
  deepEqual(printed(['a', 'b', 'c'], 100, 2), ['a', 'b'])
  deepEqual(printed(['ab', 'é'], 6, 2), ['ab', 'é'])
})
