/** `oarlock state …` with a real all-in-one. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { condition, StackFixture } from './support/stacks.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const dataDir = makeDataDir()
type StoredVersion = { version: number; kind: 'terraform' | 'inventory' }
let oarlock: OarlockProcess
let stacks: StackFixture

const state = (serial: number, resources: string[], more: object = {}) =>
  JSON.stringify({
    ...{ version: 4, terraform_version: '1.11.4', serial, lineage: 'one', ...more },
    outputs: { url: { value: 'http://x', type: 'string' }, password: { value: 'hunter22', type: 'string', sensitive: true } },
    resources: resources.map(name => ({
      ...{ mode: 'managed', type: 'null_resource', name, provider: 'provider["registry.terraform.io/hashicorp/null"]' },
      instances: [{ attributes: { secret: 'hunter22' } }],
    })),
  })

/** A Stack whose state is `content`. */
const spec = (content: string): StackSpec => ({
  engine: 'command',
  source: { inline: { files: { 'state.json': content } } },
  command: { apply: ['sh', '-c', 'cp state.json "$OARLOCK_STATE"'] },
})

async function cli(...args: string[]) {
  const { KUBECONFIG: _, ...inherited } = process.env
  const child = spawn(process.execPath, [launcher, 'state', ...args], { env: { ...inherited, OARLOCK_DATA: dataDir, NO_COLOR: '1' } })
  const result = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => (result.stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (result.stderr += text))
  child.stdin.end()
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...result }
}

before(async () => {
  oarlock = await startOarlock(dataDir)
  stacks = new StackFixture(oarlock.client)
  await stacks.create('net', spec(state(1, ['a'])))
  await stacks.untilReady('net')
  await stacks.patch('net', { spec: spec(state(2, ['a', 'b'])) })
  await stacks.untilReady('net')
})
after(async () => {
  await oarlock?.stop()
  removeDirectory(dataDir)
})

test('list, show and versions hide secrets, pull includes them', async () => {
  const [list, show, json, versions] = await Promise.all([
    cli('list'),
    cli('show', 'net'),
    cli('show', 'net', '-o', 'json'),
    cli('versions', 'net', '-o', 'json'),
  ])
  match(
    list.stdout,
    /^STACK +KIND +VERSION +SIZE +WRITTEN BY +AGE +VERSIONS +ORPHANS +LOCK\nnet +state +\d+ +[\d.]+ (?:bytes|KiB) +net-\w+-2/m,
  )
  match(
    show.stdout,
    /serial 2, lineage one[\s\S]*null_resource\.a +registry\.terraform\.io[\s\S]*null_resource\.b[\s\S]*password +\(sensitive\)\nurl +"http:\/\/x"/,
  )
  for (const { stdout } of [list, show, json, versions]) doesNotMatch(stdout, /hunter22/)
  equal(JSON.parse(json.stdout).serial, 2)
  const stored = JSON.parse(versions.stdout).versions as StoredVersion[]
  equal(stored.filter(({ kind }) => kind === 'terraform').length, 2)

  const to = join(dataDir, 'pulled.tfstate')
  equal((await cli('pull', 'net', '--to', to)).code, 0)
  match(readFileSync(to, 'utf8'), /hunter22/)
  equal(statSync(to).mode & 0o777, 0o600)
  const repeated = await cli('pull', 'net', '--to', to)
  deepEqual([repeated.code, /already exists|EEXIST/.test(repeated.stderr)], [1, true])
})

async function oldestState(): Promise<string> {
  const { versions } = JSON.parse((await cli('versions', 'net', '-o', 'json')).stdout) as { versions: StoredVersion[] }
  return String(Math.min(...versions.filter(({ kind }) => kind === 'terraform').map(({ version }) => version)))
}

test('list and versions count the inventories of engine manifests as what they are', async () => {
  const configMap = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: site\ndata:\n  value: "${value}"\n`
  const manifests = (value: string): StackSpec => ({
    engine: 'manifests',
    source: { inline: { files: { 'site.yaml': configMap(value) } } },
  })
  const site = new StackFixture(oarlock.client, 'site')
  await oarlock.client.resource(namespaceResource).create({ metadata: { name: 'site' } })
  await site.create('site', manifests('1'))
  await site.untilReady('site')
  const list = await cli('list', '-n', 'site')
  match(list.stdout, /^site +inventory +\d+ +\S+ bytes +site-\S+-1 +\S+ +\d+ +0 *$/m)
  match((await cli('versions', 'site', '-n', 'site')).stdout, / current inventory$/m)
  match((await cli('show', 'site', '-n', 'site')).stderr, /stack\/site has no state/)
})

test('errors report the cause and the available values', async () => {
  const oldest = await oldestState()
  for (const [args, code, message] of [
    [['show', 'nat'], 3, /stack "nat" not found[\s\S]*did you mean net/],
    [['show', 'net', '--version', '999'], 3, /has no version 999[\s\S]*stored versions: \d/],
    [['show', 'net', '--version', 'x'], 2, /version must be a whole number, got "x"/],
    [['rollback', 'net'], 2, /required option '--to <n>'/],
    [['rollback', 'net', '--to', oldest], 2, /cannot ask for confirmation \(.*\): stdin is not a terminal[\s\S]*confirm with --yes/],
    [['recover', 'net'], 0, /has no orphaned versions/],
    [['unlock', 'net'], 0, /is not locked/],
    [['pull', 'net', '--orphan'], 2, /--orphan requires --version/],
    [['push', 'net', '/nowhere'], 2, /\/nowhere cannot be read/],
    [['shwo', 'net'], 2, /unknown command 'shwo'/],
  ] as const) {
    const result = await cli(...args)
    match(result.stderr, message, args.join(' '))
    equal(result.code, code, args.join(' '))
  }
})

test('Runs wait with StateLocked while a user holds the lock, and continue after unlock without a failed Run', async () => {
  const { stdout, stderr } = await cli('lock', 'net', '--reason', 'surgery')
  match(stderr, /its Runs wait \(StateLocked\)[\s\S]*oarlock state unlock net -n \S+"/)
  const id = stdout.trim()
  match((await cli('list')).stdout, /for surgery \(lock id/)
  const second = await cli('lock', 'net')
  equal(second.code, 4)
  match(second.stderr, /is locked: held by \S+@\S+ for surgery[\s\S]*oarlock state unlock/)
  const before = (await stacks.get('net')).status?.lastRunNumber ?? 0
  await stacks.patch('net', { spec: { ...spec(state(3, ['a', 'b', 'c'])), retry: { initial: '200ms', max: '500ms', limit: 1 } } })
  const waiting = await stacks.until('net', 'StateLocked', stack => condition(stack, 'Ready')?.reason === 'StateLocked')
  match(
    condition(waiting, 'Ready')?.message ?? '',
    /locked by \S+@\S+ for surgery \(lock id \S+\) since 20\S+Z\. .*oarlock state unlock net/,
  )
  equal(condition(waiting, 'Reconciling')?.status, 'True')
  equal((await cli('unlock', 'net', '--id', 'another')).code, 4)
  equal((await cli('unlock', 'net', '--id', id)).code, 0)
  equal((await stacks.untilReady('net')).status?.lastRunNumber, before + 1)
  equal(JSON.parse((await cli('show', 'net', '-o', 'json')).stdout).serial, 3)
})

test('rollback, push and recover create new versions and never decrease the serial', async () => {
  const current = async () => JSON.parse((await cli('show', 'net', '-o', 'json')).stdout) as { serial: number; resources: unknown[] }
  const before = await current()
  equal((await cli('rollback', 'net', '--to', await oldestState(), '--yes')).code, 0)
  const rolledBack = await current()
  deepEqual([rolledBack.serial, rolledBack.resources.length], [before.serial + 1, 1])

  const file = join(dataDir, 'pushed.tfstate')
  writeFileSync(file, state(1, ['x', 'y']))
  const older = await cli('push', 'net', file, '--yes')
  deepEqual([older.code, /its serial is 1, but the current state has serial/.test(older.stderr)], [4, true])
  writeFileSync(file, state(50, ['x', 'y']))
  equal((await cli('push', 'net', file, '--yes')).code, 0)
  equal((await current()).serial, 50)

  // A write with a lock id that is not held is rejected and stored as an orphan (invariant 3).
  const late = { method: 'POST', path: '/state/default/net?ID=lost', body: state(51, ['x', 'y', 'z']) }
  await oarlock.client.request(late).catch(() => {})
  match((await cli('versions', 'net')).stdout, /orphan: NotLockHolder/)
  const recovered = await cli('recover', 'net', '--yes')
  equal(recovered.code, 0, recovered.stderr)
  match(recovered.stderr, /rejected with reason NotLockHolder\n {2}\+ null_resource\.z/)
  equal((await current()).resources.length, 3)
})

test('an incomplete state is stored as an orphan that can be pulled but not recovered', async () => {
  const half = '{"version":4,"serial":9,"resources":[{"mode":"managed","type":"null_resource","name":"made'
  const command = { apply: ['sh', '-c', `printf '%s' '${half}' > $OARLOCK_STATE; kill -9 $$`] }
  await stacks.create('cut', { engine: 'command', source: { inline: { files: { a: '' } } }, command, retry: { limit: 0 } })
  await stacks.untilRun('cut', 'failed', run => run.status?.phase === 'Failed')
  await eventually(async () => (await cli('versions', 'cut')).stdout.includes('orphan: Incomplete'), 'the orphaned version')
  const rejected = await cli('recover', 'cut', '--yes')
  equal(rejected.code, 4)
  match(rejected.stderr, /is incomplete: its write was interrupted[\s\S]*oarlock state pull cut --version 1 --orphan --to FILE/)
  equal((await cli('pull', 'cut', '--version', '1', '--orphan')).stdout, half)
  equal((await cli('pull', 'cut')).code, 3, 'no version is current')
})

test('reset-fence lets the next Run of a Stack write that has no next number', async () => {
  await stacks.create('fenced', spec(state(1, ['a'])))
  const { metadata, status } = await stacks.untilReady('fenced')
  const last = status!.lastRunNumber!
  match((await cli('reset-fence', 'fenced', '--yes')).stderr, /accepts its next Run, number \d+: nothing to reset/)
  const higher = await cli('reset-fence', 'fenced', '--epoch', String(last - 1), '--yes')
  deepEqual([higher.code, /has number \d+, above \d+[\s\S]*oarlock delete run\/fenced-/.test(higher.stderr)], [4, true])

  const highest = 2 ** 31 - 1
  await stacks.stacks.patchStatus(
    'fenced',
    { metadata: { uid: metadata.uid }, status: { lastRunNumber: highest } },
    { namespace: 'default' },
  )
  const noNumber = await cli('reset-fence', 'fenced', '--yes')
  equal(noNumber.code, 4)
  match(noNumber.stderr, new RegExp(`has number ${highest}, the highest[\\s\\S]*the highest number of the others is ${last}`))
  const reset = await cli('reset-fence', 'fenced', '--epoch', String(last), '--yes', '-o', 'json')
  equal(reset.code, 0, reset.stderr)
  const { changed, previous, lastRunNumber } = JSON.parse(reset.stdout)
  deepEqual([changed, previous.lastRunNumber, lastRunNumber], [true, highest, last])
  await stacks.patch('fenced', { spec: spec(state(2, ['a', 'b'])) })
  equal((await stacks.untilReady('fenced')).status?.lastRunNumber, last + 1)
  equal(JSON.parse((await cli('show', 'fenced', '-o', 'json')).stdout).serial, 2)
})

test('rotate-token replaces the token of a Stack', async () => {
  const before = (await cli('token', 'net')).stdout.trim()
  const rotated = await cli('rotate-token', 'net', '--yes')
  match(rotated.stderr, /the old token of stack\/net is invalid/)
  deepEqual([(await cli('token', 'net')).stdout, rotated.stdout.trim() === before], [rotated.stdout, false])
  const first = await cli('rotate-token', 'net', '--grace', '1h', '--yes')
  match(first.stderr, /is valid until 20/)
  doesNotMatch(first.stderr, /earlier token/)
  match(
    (await cli('rotate-token', 'net', '--yes')).stderr,
    /an earlier token of stack\/net, valid until 20.*, is invalid now: only the last one/,
  )
  const tooLong = await cli('rotate-token', 'net', '--grace', '1440h', '--yes')
  deepEqual([tooLong.code, /It must be from 0s to 720h/.test(tooLong.stderr)], [2, true], tooLong.stderr)
})
