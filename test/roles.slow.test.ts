/**
 * Every role in a process of its own, with a directory and a user of its own (if the test runs as root) and the permissions of its own
 * ServiceAccount: a role that opened a file of another one, would be denied.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runResource, type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { createJoinToken } from '../src/app/join/index.ts'
import { type Client, configMapResource } from '../src/kubernetes/client/index.ts'
import { documentedPortCount } from './support/documented-ports.ts'
import { eventually } from './support/eventually.ts'
import { listeningPorts, openWithoutCredential } from './support/listening-ports.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'
import { isReady, StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
let api: RoleProcess
let stores: RoleProcess
let controller: RoleProcess
let worker: RoleProcess
let joinService: RoleProcess
let client: Client
let ca: string

const kubeconfig = () => join(api.directory, 'kubeconfig')
const spec: StackSpec = {
  engine: 'command',
  source: { inline: { files: { 'run.sh': 'echo "hello from $OARLOCK_RUN"\n' } } },
  command: { apply: ['sh', 'run.sh'] },
  pool: 'edge',
}

before(async () => {
  ;({ api, client, ca } = await startApiRole(roles))
  const start = async (name: string, account: string, ...args: string[]) => {
    const file = roles.file(name, 'kubeconfig', await accountKubeconfig(client, account, ca))
    return await roles.start(name, [...args, '--kubeconfig', file, '--data', '.'], /^ *API /m)
  }
  stores = await start('stores', 'oarlock-stores', 'stores', '--listen', '127.0.0.1:0')
  joinService = await start('join', 'oarlock-join-service', 'join-service', '--listen', '127.0.0.1:0')
  controller = await start('controller', 'oarlock-controller', ...controllerArgs, '--external-metrics', '127.0.0.1:0')
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

async function startWorker(name: string, joinUrl: string): Promise<RoleProcess> {
  const { data } = await client.resource(configMapResource).get('oarlock-endpoint-join', { namespace: 'oarlock-system' })
  const token = await createJoinToken(client, data?.['ca.crt'] ?? '', { pool: 'edge', ttlMs: 600_000, uses: 1 })
  const file = roles.file(name, 'token', token.text)
  const { path } = roles.directory(name)
  return await roles.start(
    name,
    ['worker', '--server', joinUrl, '--token-file', file, '--name', name, '--health-address', '127.0.0.1:0'],
    /joined/,
    {
      OARLOCK_RUNS_DIR: join(path, 'runs'),
      OARLOCK_CACHE_DIR: join(path, 'cache'),
    },
  )
}

test('a Run is executed, and its log and state are served, while no role opens a file of another one', async () => {
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External', lifecycle: 'Warm' } })
  worker = await startWorker('vm', joinService.printed('join'))
  const stacks = new StackFixture(client)
  await stacks.create('hello', spec)
  await stacks.until('hello', 'Ready', isReady).catch((error: unknown) => {
    throw new Error(worker.output(), { cause: error })
  })
  const [run] = await stacks.runsOf('hello')
  equal(run?.status?.phase, 'Succeeded')

  const cli = (...args: string[]) => runOarlock([...args, '--kubeconfig', kubeconfig()])
  const log = await cli('logs', 'stack/hello')
  equal(log.code, 0, log.text)
  match(log.stdout, /hello from hello-/)
  const state = await cli('state', 'versions', 'hello')
  equal(state.code, 0, state.text)

  const queue = await cli('queue', '-o', 'json')
  equal(queue.code, 0, queue.text)
  deepEqual(JSON.parse(queue.stdout).runs, [])

  // The pool role, on a host of its own, starts a worker for the pool of mode Process.
  const file = roles.file('pool', 'kubeconfig', await accountKubeconfig(client, 'oarlock-pool', ca))
  const pool = await roles.start(
    'pool',
    ['pool', '--kubeconfig', file, '--data', '.', '--max-workers', '1', '--health-address', '127.0.0.1:0'],
    /^ *API /m,
  )
  const { pool: _, ...local } = spec
  await stacks.create('local', local)
  await stacks.until('local', 'Ready', isReady).catch((error: unknown) => {
    throw new Error(pool.output(), { cause: error })
  })

  const others: Record<string, RoleProcess> = { api, stores, join: joinService, controller, worker, pool }
  for (const [name, role] of Object.entries(others)) {
    const foreign = Object.entries(others).flatMap(([other, { directory }]) => (other === name ? [] : [directory]))
    deepEqual(
      openFiles(role.child.pid!).filter(path => foreign.some(directory => path.startsWith(directory))),
      [],
      `files of other roles that ${name} has open`,
    )
    match(role.output(), /^((?!EACCES|permission denied).)*$/is, `${name} was denied access to a file`)
  }

  const commands = { api: 'serve', stores: 'stores', join: 'join-service', controller: 'controller', worker: 'worker', pool: 'pool' }
  for (const [name, command] of Object.entries(commands)) {
    const ports = listeningPorts(others[name]!.child.pid!)
    // External metrics need a kube-apiserver: test/autoscaling.slow.test.ts.
    equal(ports.length, documentedPortCount(command, ['--external-metrics']), `ports of ${name}`)
    deepEqual(await openWithoutCredential(ports, 'default', 'hello'), [], `what ${name} serves without a credential`)
  }

  for (const name of ['hello', 'local']) {
    await stacks.stacks.delete(name, { namespace: 'default' })
    await eventually(async () => !(await stacks.stacks.getOrUndefined(name, { namespace: 'default' })), `${name} to be deleted`, 40_000)
  }
  await eventually(async () => (await client.resource(runResource).listAll()).items.length === 0, 'its Runs to be deleted')
})

test('a backup with the kubeconfig of an administrator has the objects of the API server and the states of the stores', async () => {
  const stacks = new StackFixture(client)
  await stacks.create('saved', spec)
  await stacks.until('saved', 'Ready', isReady)
  const file = join(base, 'roles.backup')
  const done = await runOarlock(['backup', '--kubeconfig', kubeconfig(), '--to', file, '--include-logs'])
  equal(done.code, 0, done.text)
  match(done.text, /states: [1-9]\d* versions of 1 Stacks/)
  match(done.text, /not included: keys/)
  equal((await runOarlock(['backup', 'verify', file])).code, 0)
  const account = roles.file('other', 'kubeconfig', await accountKubeconfig(client, 'oarlock-controller', ca))
  const rejected = await runOarlock(['backup', '--kubeconfig', account, '--to', join(base, 'rejected.backup')])
  equal(rejected.code, 4, rejected.text)
  const restored = join(base, 'restored')
  match((await runOarlock(['restore', file, '--data', restored])).text, /EncryptionKeyMissing|key state-key-\w+, which is missing/)
  const key = ['--keys', join(stores.directory, 'keys')]
  const withKey = await runOarlock([
    'restore',
    file,
    '--data',
    restored,
    ...key,
    '--encryption-provider-config',
    join(api.directory, 'keys', 'encryption-config.json'),
  ])
  equal(withKey.code, 0, withKey.text)
  match(withKey.text, /states of 1 Stacks restored\n[1-9]\d* logs restored/)
  await stacks.stacks.delete('saved', { namespace: 'default' })
  await stacks.untilDeleted('saved')
})

test('a role that is restarted continues, and a controller that gets SIGTERM releases its Lease immediately', async t => {
  const file = roles.file('controller-2', 'kubeconfig', await accountKubeconfig(client, 'oarlock-controller', ca))
  const args = [...controllerArgs, '--kubeconfig', file, '--data', '.']
  const next = await roles.start('controller-2', args, /^ *API /m)
  const holder = async () => {
    const path = '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/oarlock-controller'
    const lease = (await (await client.request({ method: 'GET', path })).json()) as { spec: { holderIdentity: string } }
    return lease.spec.holderIdentity
  }
  equal(await holder(), controller.printed('identity'))
  const stopped = controller.stop('SIGTERM')
  const stoppedMs = performance.now()
  equal(await stopped, 0)
  await eventually(async () => (await holder()) === next.printed('identity'), 'the other controller to lead', 30_000)
  // The Lease was released: it lasts 15 s and has just been renewed. The bar of 2 s is in npm run bench -- failover.
  ok(performance.now() - stoppedMs < 10_000)
  t.diagnostic(`the next controller led ${Math.round(performance.now() - stoppedMs)} ms after SIGTERM`)

  equal(await stores.stop(), 0)
  const storesFile = join(stores.directory, 'kubeconfig')
  stores = await roles.start('stores', ['stores', '--listen', '127.0.0.1:0', '--kubeconfig', storesFile, '--data', '.'], /^ *API /m)
  // The stores are at another port now: a worker that joins later learns it from the join service, the present one must not get the Run.
  equal(await worker.stop(), 0)
  const stacks = new StackFixture(client)
  await stacks.create('again', spec)
  await startWorker('vm-2', joinService.printed('join'))
  await stacks.until('again', 'Ready', isReady)
  ok(next.child.exitCode === null)
})

/** Paths of the regular files that a process has open. */
function openFiles(pid: number): string[] {
  const directory = `/proc/${pid}/fd`
  return readdirSync(directory).flatMap(fd => {
    try {
      const path = readlinkSync(join(directory, fd))
      return path.startsWith('/') ? [path] : []
    } catch {
      return []
    }
  })
}
