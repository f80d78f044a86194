/** Stores that were put back, or lost, by hand: no Run starts from an older state or from none before a user has decided. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Stack, StackSpec } from '../src/api/index.ts'
import { countDone, readLedger, record } from './support/ledger.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const dataDir = join(base, 'data')
const states = join(dataDir, 'state')
const ledger = join(base, 'ledger')
let oarlock: OarlockProcess | undefined
let stacks: StackFixture

after(async () => {
  await oarlock?.stop()
  removeDirectory(base)
})

async function start(...flags: string[]): Promise<void> {
  oarlock = await startOarlock(dataDir, flags)
  stacks = new StackFixture(oarlock.client)
}

async function cli(...args: string[]): Promise<{ code: number | null; text: string }> {
  return await runOarlock([...args, '-n', 'default'], { env: { KUBECONFIG: undefined, OARLOCK_DATA: dataDir } })
}

/** Each resource records its creation. */
const created = (...names: string[]): StackSpec => ({
  engine: terraformEngine,
  source: {
    inline: {
      files: {
        'main.tf': names
          .map(
            name =>
              `resource "terraform_data" "${name}" {\n provisioner "local-exec" {\n command = "${record(ledger, 'done', name)}"\n }\n }`,
          )
          .join('\n'),
      },
    },
  },
})

const untilStalled = (reason: string) => stacks.until('web', reason, stack => condition(stack, 'Stalled')?.reason === reason)
const authors = async () =>
  (JSON.parse((await cli('state', 'versions', 'web', '-o', 'json')).text) as { versions: { author: string }[] }).versions.map(
    each => each.author,
  )

test('an older state is not used until a newer one is uploaded, and a lost one until that is accepted', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  await start()
  await stacks.create('web', created('a'))
  await stacks.untilReady('web')
  equal(await oarlock?.stop(), 0)
  cpSync(states, join(base, 'older'), { recursive: true })
  await start()
  await stacks.patch('web', { spec: created('a', 'b') })
  const { status } = await stacks.untilReady('web')
  const newest = status?.stateVersion ?? 0
  equal((await cli('state', 'pull', 'web', '--to', join(base, 'web.tfstate'))).code, 0)
  equal(await oarlock?.stop(), 0)

  rmSync(states, { recursive: true })
  renameSync(join(base, 'older'), states)
  // Without a Run: the restart notices it.
  await start('--replace-stores')
  match((await untilStalled('StateRegressed')).status?.conditions?.[0]?.message ?? '', /a Run of the Stack has stored version \d+/)
  for (const command of ['run', 'plan']) {
    const rejected = await cli(command, 'web')
    deepEqual([rejected.code, /oarlock state accept web -n default/.test(rejected.text)], [4, true], rejected.text)
  }
  await stacks.patch('web', { spec: created('a', 'b', 'c') })
  await stacks.until('web', 'the change', stack => stack.status?.observedGeneration === stack.metadata.generation)
  await untilStalled('StateRegressed')
  deepEqual(countDone(readLedger(ledger)), { a: 1, b: 1 })
  const pushed = await cli('state', 'push', 'web', join(base, 'web.tfstate'), '--yes')
  deepEqual([pushed.code, new RegExp(`stored as version ${newest + 1}`).test(pushed.text)], [0, true], pushed.text)
  await stacks.untilReady('web')
  deepEqual(countDone(readLedger(ledger)), { a: 1, b: 1, c: 1 })
  equal(await oarlock?.stop(), 0)

  rmSync(states, { recursive: true })
  await start('--replace-stores')
  await untilStalled('StateMissing')
  match((await cli('state', 'accept', 'web')).text, /no state is stored[\s\S]*confirm with --yes/)
  const accepted = await cli('state', 'accept', 'web', '--yes')
  deepEqual([accepted.code, /stack\/web: no state is accepted, as version \d+/.test(accepted.text)], [0, true], accepted.text)
  await stacks.untilReady('web')
  match((await authors())[0] ?? '', /^user:./)
  match((await cli('state', 'accept', 'web', '--yes')).text, /nothing to accept/)
  match((await cli('plan', 'web')).text, /3 to add/)
  deepEqual(countDone(readLedger(ledger)), { a: 1, b: 1, c: 1 })
})

test('a Stack without its state is deleted only by force, and leaves its resources', { skip: skipWithoutTerraformEngine }, async () => {
  await stacks.create('forced', {
    engine: terraformEngine,
    source: { inline: { files: { 'main.tf': 'resource "terraform_data" "part" {}' } } },
  })
  await stacks.untilReady('forced')
  equal(await oarlock?.stop(), 0)
  renameSync(states, join(base, 'kept'))
  await start('--replace-stores')
  const isMissing = (stack: Stack) => condition(stack, 'Stalled')?.reason === 'StateMissing'
  await stacks.until('forced', 'StateMissing', isMissing)
  const refused = await cli('destroy', 'forced', '--yes')
  deepEqual(
    [refused.code, /StateMissing: .*"oarlock delete stack\/forced -n default --force" deletes the Stack and leaves/.test(refused.text)],
    [4, true],
    refused.text,
  )
  equal((await stacks.get('forced')).metadata.deletionTimestamp, undefined)
  const deleted = await cli('delete', 'stack', 'forced', '--timeout', '30s')
  deepEqual([deleted.code, /cannot destroy stack\/forced: .*is stored/.test(deleted.text)], [1, true], deleted.text)
  const other = await cli('delete', 'configmap', 'forced', '--force')
  deepEqual([other.code, /configmap\/forced is no Stack/.test(other.text)], [2, true], other.text)
  const forced = await cli('delete', 'stack', 'forced', '--force', '--timeout', '30s')
  equal(forced.code, 0, forced.text)
  equal(await oarlock?.stop(), 0)
  rmSync(states, { recursive: true, force: true })
  renameSync(join(base, 'kept'), states)
  await start('--replace-stores')
})

test('an imported state that is lost before the first Run is missed, also if its import was killed, unless the state is elsewhere; a failed import leaves no record', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  const importInto = (name: string) => cli('state', 'import', name, '--from', join(base, 'web.tfstate'), '--yes')
  for (const name of ['locked', 'imported', 'killed']) await stacks.create(name, { ...created('a', 'b'), suspend: true })
  equal((await cli('state', 'lock', 'locked')).code, 0)
  const failed = await importInto('locked')
  deepEqual([failed.code, /is locked: held by/.test(failed.text)], [4, true], failed.text)
  equal((await stacks.get('locked')).metadata.annotations?.['oarlock.dev/imported-state'], undefined)
  const imported = await importInto('imported')
  deepEqual([imported.code, /stored as version 1\n/.test(imported.text)], [0, true], imported.text)

  // What a command leaves that is killed after it has stored the state: the controller completes the record.
  const key = 'oarlock.dev/imported-state'
  const forced = await cli('state', 'import', 'killed', '--from', join(base, 'web.tfstate'), '--yes', '--force')
  equal(forced.code, 0, forced.text)
  const lineage = (await stacks.get('killed')).metadata.annotations?.[key]
  await stacks.patch('killed', { metadata: { annotations: { [key]: `pending:${lineage}` } }, spec: { historyLimit: 3 } })
  await stacks.until('killed', 'the record of the import', ({ metadata }) => metadata.annotations?.[key] === lineage)
  equal(await oarlock?.stop(), 0)

  rmSync(states, { recursive: true })
  await start('--replace-stores')
  await stacks.until('killed', 'Stalled: StateMissing', stack => condition(stack, 'Stalled')?.reason === 'StateMissing')
  const stalledAs = (reason: string | undefined) =>
    stacks.until('imported', `Stalled: ${reason}`, stack => condition(stack, 'Stalled')?.reason === reason)
  await stalledAs('StateMissing')
  await stacks.patch('imported', { spec: { suspend: false } })
  await stacks.until('imported', 'the change', stack => stack.status?.observedGeneration === stack.metadata.generation)
  await stalledAs('StateMissing')
  deepEqual(await stacks.runsOf('imported'), [])
  await stacks.patch('imported', { spec: { suspend: true, state: 'External' } })
  await stalledAs(undefined)
  deepEqual(countDone(readLedger(ledger)), { a: 1, b: 1, c: 1 })
})
