/** Data directories that earlier commits made (`record-data-directory.ts`), opened by this version, and then by the version that made them. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { checkOutVersion, skipWithoutCommit } from '../support/earlier-version.ts'
import { makeDataDir, removeDirectory, startOarlock } from '../support/oarlock-process.ts'
import { runOarlock, runProgram, skipWithoutTofu } from '../support/run-program.ts'
import { condition, isReady, StackFixture } from '../support/stacks.ts'
import { recordedStacks } from './recorded-stacks.ts'

const recordings = join(import.meta.dirname, 'recordings')
const commits = readdirSync(recordings).map(name => name.slice(0, -'.tar.gz'.length))
const applied = Object.keys(recordedStacks).filter(name => name !== 'waiting')

function unpack(commit: string): string {
  const dataDir = makeDataDir()
  execFileSync('tar', ['xzf', join(recordings, `${commit}.tar.gz`), '-C', dataDir])
  return dataDir
}

for (const commit of commits) {
  describe(`a data directory of ${commit.slice(0, 8)}`, { skip: skipWithoutTofu() }, () => {
    test('keeps its Stacks, states and logs, and nothing is created twice', async () => {
      const dataDir = unpack(commit)
      const ledger = join(dataDir, 'ledger')
      appendFileSync(ledger, '')
      const created = () => readFileSync(ledger, 'utf8').split('\n').filter(Boolean)
      const oarlock = await startOarlock(dataDir, [], { LEDGER_FILE: ledger })
      try {
        const env = { KUBECONFIG: oarlock.kubeconfig }
        const run = async (...args: string[]) => await runOarlock([...args, '-n', 'team'], { env })
        const stacks = new StackFixture(oarlock.client, 'team')
        for (const name of applied) await stacks.until(name, 'Ready', isReady)

        // What the earlier version stored.
        match((await run('state', 'show', 'network')).stdout, /terraform_data\.subnet\["a"\][\s\S]*token/)
        match((await run('state', 'pull', 'dependent')).stdout, /"made": true/)
        const log = await run('logs', `run/${(await stacks.runsOf('network'))[0]!.metadata.name}`)
        match(log.stdout, /terraform_data\.subnet\["b"\]: Creation complete/)
        match((await run('logs', 'stack/dependent')).stdout, /subnets \["a","b"\]/)

        // Nothing changes, neither automatically nor on request.
        for (const name of Object.keys(recordedStacks)) equal((await stacks.runsOf(name)).length, 1, name)
        for (const name of applied) {
          const requested = await run('run', name, '--wait')
          equal(requested.code, 0, requested.text)
          match(requested.text, /is up to date/)
        }
        deepEqual(created(), [])

        await approve(run, stacks)
        deepEqual(created(), ['create queue'])
      } finally {
        await oarlock.stop()
        removeDirectory(dataDir)
      }
    })

    test('is rejected by that version once this one has used it, and remains usable', {
      skip: skipWithoutCommit(commit),
    }, async () => {
      const dataDir = unpack(commit)
      const sources = makeDataDir()
      try {
        const upgraded = await startOarlock(dataDir)
        equal(await upgraded.stop(), 0)
        const database = join(dataDir, 'oarlock.db')
        const before = readFileSync(database)
        const program = checkOutVersion(commit, join(sources, 'checkout'))
        const { code, text } = await runProgram(process.execPath, [program, 'up', '--data', dataDir, '--listen', '127.0.0.1:0'])
        equal(code, 7, text)
        match(text, /oarlock\.db has data format \d+, this version of oarlock reads up to \d+: run the newer version again/)
        ok(before.equals(readFileSync(database)), 'the database was changed')
        const again = await startOarlock(dataDir)
        for (const name of applied) await new StackFixture(again.client, 'team').until(name, 'Ready', isReady)
        equal(await again.stop(), 0)
      } finally {
        removeDirectory(dataDir)
        removeDirectory(sources)
      }
    })
  })
}

/** Approves the plan that awaits approval if it can be shown; the oldest versions stored none, so a new one is made first. */
async function approve(run: (...args: string[]) => ReturnType<typeof runOarlock>, stacks: StackFixture): Promise<void> {
  await stacks.until('waiting', 'approval', stack => condition(stack, 'AwaitingApproval')?.status === 'True')
  let approval = await run('approve', 'waiting', '--yes', '--wait')
  if (approval.code !== 0) {
    match(approval.text, /is not approved: the plan of run\/waiting-\w+-1 is not stored\n.*"oarlock plan waiting -n team" makes a new plan/)
    const plan = await run('plan', 'waiting')
    equal(plan.code, 0, plan.text)
    approval = await run('approve', 'waiting', '--yes', '--wait')
  }
  equal(approval.code, 0, approval.text)
  match(approval.text, /terraform_data\.queue will be created/)
  await stacks.until('waiting', 'Ready', isReady)
}
