import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tmpfsUnavailable } from '../../../../test/support/mount-tmpfs.ts'
import { readStartTime } from '../../workspace/index.ts'
import { sweepRunDirectories } from './run-directories.ts'
import { ownerPrefix, unsavedMarkerName } from './supervisor-protocol.ts'

const runsDir = mkdtempSync(join(tmpdir(), 'oarlock-sweep-'))
after(() => rmSync(runsDir, { recursive: true, force: true }))

function directory(name: string, files: Record<string, string>, ageMs = 0): void {
  mkdirSync(join(runsDir, name))
  for (const [file, content] of Object.entries(files)) writeFileSync(join(runsDir, name, file), content)
  const at = new Date(Date.now() - ageMs)
  utimesSync(join(runsDir, name), at, at)
}

test('removes only directories without a living owner, and kills the processes of their Runs', async () => {
  const hourMs = 3_600_000
  const neverCreated = '0f8fad5b-d9cb-469f-a165-70867728950e'
  const me = { [ownerPrefix + process.pid]: readStartTime(process.pid) ?? '' }
  const exited = { [`${ownerPrefix}2147483646`]: '1' }
  directory('own', me)
  directory('pid-reused', { [ownerPrefix + process.pid]: '1' })
  directory('exited', exited)
  directory('exited-and-own', { ...exited, ...me })
  directory('being-created', {})
  directory(neverCreated, {}, 2 * 60_000)
  directory('of-something-else', { file: '' }, 2 * 60_000)
  directory('unsaved', { ...exited, [unsavedMarkerName]: '' }, hourMs)
  directory('unsaved-old', { ...exited, [unsavedMarkerName]: '' }, 25 * hourMs)
  const stray = spawn('sleep', ['100'], { env: { PATH: process.env.PATH, OARLOCK_RUN_UID: 'exited' }, detached: true, stdio: 'ignore' })
  const strayEnd = once(stray, 'exit')

  const removed = await sweepRunDirectories(runsDir, Date.now())
  assert.deepEqual(removed.sort(), [neverCreated, 'exited', 'pid-reused', 'unsaved-old'])
  assert.deepEqual(readdirSync(runsDir).sort(), ['being-created', 'exited-and-own', 'of-something-else', 'own', 'unsaved'])
  assert.deepEqual(await strayEnd, [null, 'SIGKILL'])
  assert.deepEqual(await sweepRunDirectories(join(runsDir, 'no-such'), Date.now()), [])
})

test('a directory that cannot be removed does not keep the others', { skip: tmpfsUnavailable() ?? false }, async t => {
  const parent = mkdtempSync(join(tmpdir(), 'oarlock-sweep-'))
  for (const name of ['a', 'b', 'c']) {
    mkdirSync(join(parent, name, 'work'), { recursive: true })
    writeFileSync(join(parent, name, `${ownerPrefix}2147483646`), '1')
  }
  const mountPoint = join(parent, 'b', 'work')
  execFileSync('mount', ['--bind', mountPoint, mountPoint])
  t.after(() => {
    execFileSync('umount', [mountPoint])
    rmSync(parent, { recursive: true })
  })
  assert.deepEqual((await sweepRunDirectories(parent, Date.now())).sort(), ['a', 'c'])
})
