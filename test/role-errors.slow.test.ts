/** What commands report while roles that run in processes of their own are missing, stopped or paused. */
import { equal, match, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { readEndpoint, readLeader } from '../src/app/discovery/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
let api: RoleProcess
let client: Client
let ca: string

before(async () => {
  ;({ api, client, ca } = await startApiRole(roles))
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

const start = async (name: string, account: string, ...args: string[]) => {
  const file = roles.file(name, 'kubeconfig', await accountKubeconfig(client, account, ca))
  return await roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ *API /m)
}

async function expectError(args: string[], code: number, ...patterns: RegExp[]) {
  const result = await runOarlock([...args, '--kubeconfig', join(api.directory, 'kubeconfig')])
  equal(result.code, code, result.text)
  for (const pattern of patterns) match(result.text, pattern)
}

test('a worker with the address of the API server learns where workers join', async () => {
  const joinService = await start('join', 'oarlock-join-service', 'join-service', '--listen', '127.0.0.1:0')
  await eventually(async () => await readEndpoint(client, 'join'), 'the join service to publish')
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
  const created = await runOarlock(['token', 'create', '--pool', 'edge', '--kubeconfig', join(api.directory, 'kubeconfig')])
  match(created.stderr, new RegExp(`oarlock worker --server ${joinService.printed('join')} --token-file FILE`))
  match(created.stderr, /start "oarlock join-service" with --listen/)
  const file = roles.file('vm', 'token', created.stdout)
  const worker = await runOarlock(['worker', '--server', client.server, '--token-file', file])
  equal(worker.code, 4, worker.text)
  match(worker.text, /workers cannot join at https:\S+ \(40[134] for \/join\/ca\): .* "oarlock join-service" \(default port 7469\)/)
  equal(await joinService.stop(), 0)
})

test('commands name the role that does not serve, and for the queue who leads', async () => {
  const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, suspend: true }
  await new StackFixture(client).create('hello', spec)
  await expectError(['state', 'list'], 5, /the stores have not published an address/, /hint: is "oarlock stores" running\?/)
  await expectError(['queue'], 5, /has not published an address.*: no controller leads/, /hint: is "oarlock controller" running\?/)

  const stores = await start('stores', 'oarlock-stores', 'stores', '--listen', '127.0.0.1:0')
  await eventually(async () => await readEndpoint(client, 'stores'), 'the stores to publish')
  await stores.stop()
  await expectError(['state', 'versions', 'hello'], 5, /the stores do not answer at https:\/\/\S+ \(ECONNREFUSED\)/, /is "oarlock stores"/)

  const controller = await start('controller', 'oarlock-controller', ...controllerArgs)
  await eventually(async () => await readEndpoint(client, 'queue'), 'the queue to be published')
  const identity = controller.printed('identity')
  match(identity, new RegExp(`_${controller.child.pid}_[0-9a-f]{8}$`))
  equal((await readLeader(client))?.identity, identity)
  const leases = await runOarlock(['get', 'leases', '-n', 'oarlock-system', '--kubeconfig', join(api.directory, 'kubeconfig')])
  match(leases.stdout, new RegExp(`^oarlock-controller +${identity} `, 'm'))
  controller.child.kill('SIGSTOP')
  const askedAtMs = performance.now()
  const paused = new RegExp(`does not answer at \\S+ \\(no answer within 3s\\): .*${identity} .*renewed its Lease`)
  await expectError(['queue'], 5, paused, /hint: its process may be paused or overloaded; another one leads when its Lease has expired/)
  ok(performance.now() - askedAtMs < 9_000, 'the answer is bounded')
  await controller.stop('SIGKILL')
  await expectError(['queue'], 5, new RegExp(`\\(ECONNREFUSED\\): .*${identity} .*renewed its Lease \\S+ ago`))
})
