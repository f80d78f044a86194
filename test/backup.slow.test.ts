/** Backup and restore of a whole installation, as a user does it: `oarlock backup` while Runs execute, the loss of the data directory, `oarlock restore` elsewhere. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { StackSpec } from '../src/api/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { restoreMarker } from '../src/kubernetes/util/index.ts'
import { eventually } from './support/eventually.ts'
import { countDone, readLedger, record } from './support/ledger.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun } from './support/processes.ts'
import { runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const base = makeDataDir()
const at = (name: string) => join(base, name)
const ledger = at('ledger')
const file = at('my.backup')
let oarlock: OarlockProcess
let stacks: StackFixture

after(async () => {
  await oarlock?.stop()
  removeDirectory(base)
})

/** Ends a command with SIGKILL as soon as `isReached`, without a pause between two looks. Returns false if the command has ended before. */
async function killedWhen(isReached: () => boolean, ...args: string[]): Promise<boolean> {
  const child = spawn(process.execPath, [launcher, ...args], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  while (child.exitCode === null && !isReached()) await nextTurn()
  child.kill('SIGKILL')
  const [, signal] = await ended
  return signal === 'SIGKILL'
}

async function cli(...args: string[]): Promise<{ code: number | null; output: string }> {
  const { code, text } = await runOarlock(args, { env: { KUBECONFIG: undefined, OARLOCK_DATA: undefined } })
  return { code, output: text }
}

/** Each item is a resource that records when it is created. */
const created = (...items: [name: string, script: string][]): StackSpec => ({
  engine: terraformEngine,
  source: {
    inline: {
      files: {
        'main.tf': items
          .map(
            ([name, script], index) => `
              resource "terraform_data" "${name}" {
                ${index > 0 ? `depends_on = [terraform_data.${items[index - 1]![0]}]` : ''}
                provisioner "local-exec" { command = "${script}; ${record(ledger, 'done', name)}" }
              }`,
          )
          .join('\n'),
      },
    },
  },
})

const isRestored = (name: string) =>
  stacks.until(name, 'RestoredFromBackup', stack => condition(stack, 'Stalled')?.reason === 'RestoredFromBackup')

before(() => {
  writeFileSync(at('passphrase'), 'correct horse battery\n', { mode: 0o600 })
})

test('a backup of a running installation has objects, states, logs and keys, and is verified', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  oarlock = await startOarlock(at('first'), ['--max-workers', '3'])
  stacks = new StackFixture(oarlock.client)
  await oarlock.client
    .resource(secretResource)
    .create({ metadata: { name: 'mine', namespace: 'default' }, stringData: { password: 'hunter2' } })
  await stacks.create('web', created(['web', 'true']))
  await stacks.create('reviewed', { ...created(['reviewed', 'true']), approval: 'Manual' })
  await stacks.create('busy', created(['begun', 'true'], ['finished', `test -e ${at('continue')} || sleep 100`]))
  await stacks.untilReady('web')
  await stacks.until('reviewed', 'a plan to approve', ({ status }) => status?.plan !== undefined)
  equal((await cli('token', 'create', '--kubeconfig', oarlock.kubeconfig, '--pool', 'default')).code, 0)
  const stateOf = async (name: string) => await (await oarlock.client.request({ method: 'GET', path: `/state/default/${name}` })).text()
  await eventually(async () => /"begun"/.test(await stateOf('busy')), 'the first resource of the running Run in its state', 40_000)

  const backup = ['backup', '--data', at('first'), '--to', file, '--include-logs', '--include-keys']
  match((await cli(...backup)).output, /cannot ask for a passphrase[\s\S]*--passphrase-file/)
  const done = await cli(...backup, '--passphrase-file', at('passphrase'))
  equal(done.code, 0, done.output)
  match(done.output, /my\.backup: \d+ objects up to resource version \d+/)
  match(done.output, /states: \d+ versions of \d+ Stacks, 0 orphaned versions, 1 plans, 1 locks/)
  match(done.output, /encrypted with the key state-key-[0-9a-f]{8}, which is in the backup/)
  match(done.output, /^logs: [2-9]/m)
  match(done.output, /^not included: certificates /m)
  doesNotMatch(done.output, /not included: (states|logs|keys)/)
  equal(statSync(file).mode & 0o777, 0o600)
  ok(!readFileSync(file, 'latin1').includes('hunter2'))
  deepEqual(
    readdirSync(base).filter(name => name.startsWith('my.backup.')),
    [],
  )

  const verified = await cli('backup', 'verify', file, '--passphrase-file', at('passphrase'))
  deepEqual([verified.code, /verified: 4 files, the passphrase decrypts the keys/.test(verified.output)], [0, true], verified.output)
  const listed = JSON.parse((await cli('backup', 'verify', file, '-o', 'json')).output)
  deepEqual(
    listed.files.map(({ name }: { name: string }) => name),
    ['objects.db', 'states.db', 'logs.tar', 'keys.json'],
  )
  writeFileSync(at('wrong'), 'another passphrase\n')
  const wrong = await cli('backup', 'verify', file, '--passphrase-file', at('wrong'))
  deepEqual([wrong.code, /does not decrypt the keys/.test(wrong.output)], [7, true], wrong.output)
})

test('a damaged or truncated backup is found, and is not restored', { skip: skipWithoutTerraformEngine }, async () => {
  const { size } = statSync(file)
  const bytes = readFileSync(file)
  // In the first table of `objects.db`, which begins with its own header after that of the archive.
  bytes[bytes.indexOf('SQLite format 3\0') + 1_000]! ^= 1
  writeFileSync(at('damaged'), bytes)
  const damaged = await cli('backup', 'verify', at('damaged'))
  deepEqual([damaged.code, /is damaged: objects\.db has the SHA-256 digest/.test(damaged.output)], [7, true], damaged.output)
  writeFileSync(at('cut'), bytes.subarray(0, size - 4_096))
  for (const args of [
    ['backup', 'verify', at('cut')],
    ['restore', at('cut'), '--data', at('never')],
  ]) {
    const result = await cli(...args)
    deepEqual([result.code, /is damaged: it is cut off/.test(result.output)], [7, true], result.output)
  }
  ok(!existsSync(at('never')))
})

test('a backup that is killed leaves no file under its name, or a whole one', { skip: skipWithoutTerraformEngine }, async () => {
  const temporary = () => readdirSync(base).filter(name => name.startsWith('killed.backup.'))
  const inTemporary = (file: string) => temporary().some(name => existsSync(join(base, name, file)))
  const moments: (() => boolean)[] = [() => temporary().length > 0, () => inTemporary('objects.db'), () => inTemporary('states.db')]
  const backup = ['backup', '--data', at('first'), '--to', at('killed.backup'), '--force']
  let kills = 0
  // On a loaded machine a command may end before it is killed: then it is repeated.
  for (let attempt = 0; attempt < moments.length || (kills === 0 && attempt < 20); attempt++) {
    const isReached = moments[attempt % moments.length]!
    const isKilled = await killedWhen(isReached, ...backup, '--include-keys', '--passphrase-file', at('passphrase'))
    // A killed command has left its temporary files, unless it was at its end.
    if (isKilled && temporary().length > 0) kills++
    if (existsSync(at('killed.backup'))) equal((await cli('backup', 'verify', at('killed.backup'))).code, 0)
    for (const name of temporary()) rmSync(at(name), { recursive: true, force: true })
  }
  ok(kills > 0, 'no backup was killed while it was written')
})

test('a restore that is killed leaves a directory that no process starts on, until it is repeated', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  const target = at('killed')
  const restore = ['restore', file, '--data', target, '--passphrase-file', at('passphrase'), '--force']
  let kills = 0
  for (const awaited of ['restore.tmp', join('restore.tmp', 'objects.db'), restoreMarker, join('state', 'state.db')]) {
    rmSync(target, { recursive: true, force: true })
    await killedWhen(() => existsSync(join(target, awaited)), ...restore)
    const hasState = existsSync(join(target, 'state', 'state.db'))
    const hasObjects = existsSync(join(target, 'oarlock.db'))
    ok(existsSync(join(target, restoreMarker)) || hasState === hasObjects, `killed when ${awaited} appeared`)
    if (existsSync(join(target, 'restore.tmp'))) kills++
  }
  ok(kills > 0, 'no restore was killed before its end')
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { mode: 0o700 })
  writeFileSync(join(target, restoreMarker), '')
  const up = await cli('up', '--data', target, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0')
  deepEqual([up.code, /the restore of a backup to \S+ has not finished/.test(up.output)], [7, true], up.output)
  const backup = await cli('backup', '--data', target, '--to', at('half.backup'))
  deepEqual([backup.code, /has not finished/.test(backup.output)], [7, true], backup.output)
  equal((await cli(...restore)).code, 0)
  ok(!existsSync(join(target, restoreMarker)) && existsSync(join(target, 'oarlock.db')))
})

test('after the loss of the data directory, nothing is applied before it is reviewed, and nothing is created twice', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  const [active] = (await stacks.runsOf('busy')).filter(run => run.status?.phase === 'Applying')
  await oarlock.kill()
  await eventually(async () => (await processesOfRun(active!.metadata.uid)).length === 0, 'the processes of the Run to end')
  rmSync(at('first'), { recursive: true, force: true, maxRetries: 5 })

  const second = ['--data', at('second')]
  const without = await cli('restore', file, ...second)
  deepEqual([without.code, /encrypted with the key state-key-.*--passphrase-file/s.test(without.output)], [7, true], without.output)
  ok(!existsSync(at('second')))
  const done = await cli('restore', file, ...second, '--passphrase-file', at('passphrase'))
  equal(done.code, 0, done.output)
  match(done.output, /states of \d+ Stacks restored/)
  match(done.output, /not in the backup: certificates/)
  match((await cli('restore', file, ...second)).output, /oarlock\.db exists: .*--force/)

  oarlock = await startOarlock(at('second'), ['--max-workers', '3'])
  stacks = new StackFixture(oarlock.client)
  const command = (...args: string[]) => cli(...args, '--kubeconfig', oarlock.kubeconfig, '-n', 'default')
  for (const name of ['web', 'reviewed', 'busy']) match(condition(await isRestored(name), 'Ready')?.message ?? '', /oarlock restore accept/)
  deepEqual(countDone(readLedger(ledger)), { web: 1, begun: 1 })
  match((await command('run', 'web')).output, /was restored from a backup and waits for its review/)
  const unplanned = await command('restore', 'accept', '--all', '--yes')
  deepEqual([unplanned.code, /not planned since the restore: .*web/.test(unplanned.output)], [4, true], unplanned.output)
  equal((await stacks.get('reviewed')).status?.plan, undefined, 'the plan to approve is void')
  const credentials = (await oarlock.client.resource(secretResource).listAll()).items.filter(
    ({ type }) => type === 'oarlock.dev/join-token',
  )
  deepEqual(credentials, [])

  match((await command('plan', 'web')).output, /stack\/web: plan: no changes/)
  const accepted = await command('restore', 'accept', 'web', '--yes')
  deepEqual([accepted.code, /stack\/web -n default accepted/.test(accepted.output)], [0, true], accepted.output)
  await stacks.untilReady('web')

  writeFileSync(at('continue'), '')
  match((await command('plan', 'busy')).output, /stack\/busy: plan: [12] to add/)
  equal((await command('restore', 'accept', 'busy', '--yes')).code, 0)
  const busy = await stacks.untilReady('busy')
  ok((busy.status?.lastRunNumber ?? 0) > 1_000_000)
  deepEqual(countDone(readLedger(ledger)), { web: 1, begun: 1, finished: 1 })
  equal((await oarlock.client.resource(secretResource).get('mine', { namespace: 'default' })).data?.password, 'aHVudGVyMg==')
  match((await command('logs', 'stack/web')).output, /./)
})
