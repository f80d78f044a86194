/** `oarlock controller` reads from stores that run apart whether states are missing or locked, with the rights of its own ServiceAccount. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
let api: RoleProcess
let client: Client
let stacks: StackFixture
let start: (name: string, account: string, ...args: string[]) => Promise<RoleProcess>

before(async () => {
  const started = await startApiRole(roles)
  ;({ api, client } = started)
  stacks = new StackFixture(client)
  start = async (name, account, ...args) => {
    const file = roles.file(name, 'kubeconfig', await accountKubeconfig(client, account, started.ca))
    return await roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ready/m)
  }
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }
const oarlock = (...args: string[]) => runOarlock([...args, '--kubeconfig', join(api.directory, 'kubeconfig')])

test('an idle Stack whose state is lost is reported without a Run, and a Run waits for the lock of a user', async () => {
  await start('stores', 'oarlock-stores', 'stores', '--listen', '127.0.0.1:0')
  await stacks.create('idle', { ...spec, suspend: true })
  const applied = { generation: 1, revision: 'r', inputsDigest: 'i', at: '2026-01-01T00:00:00Z', runName: 'idle-1' }
  await stacks.stacks.patchStatus(
    'idle',
    { status: { stateVersion: 3, resources: 1, lastRunNumber: 1, applied } },
    { namespace: 'default' },
  )
  await stacks.create('locked', { ...spec, suspend: true })
  equal((await oarlock('state', 'lock', 'locked', '--reason', 'surgery')).code, 0)
  await stacks.patch('locked', { spec: { suspend: false } })

  await start('controller', 'oarlock-controller', ...controllerArgs)
  const lost = await stacks.until('idle', 'StateMissing', stack => condition(stack, 'Stalled')?.reason === 'StateMissing')
  match(condition(lost, 'Stalled')?.message ?? '', /no state is stored: version 3 or a later one is required/)
  const waiting = await stacks.until('locked', 'StateLocked', stack => condition(stack, 'Ready')?.reason === 'StateLocked')
  match(condition(waiting, 'Ready')?.message ?? '', /locked by \S+ for surgery \(lock id \S+\) since /)
  deepEqual([await stacks.runsOf('idle'), await stacks.runsOf('locked')], [[], []])

  equal((await oarlock('state', 'unlock', 'locked', '--yes')).code, 0)
  await stacks.untilRun('locked', 'the creation', () => true)
  const accepted = await oarlock('state', 'accept', 'idle', '--yes')
  equal(accepted.code, 0, accepted.text)
  await stacks.until('idle', 'no error of the state', stack => condition(stack, 'Stalled')?.reason !== 'StateMissing')
})
