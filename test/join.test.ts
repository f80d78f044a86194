/** Workers on other machines: they join with a token, and can access only what their own Runs need. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  type Run,
  runResource,
  type StackSpec,
  systemNamespace,
  workerBucketOf,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { joinTokens } from '../src/app/index.ts'
import { type Client, createClient, leaseResource, namespaceResource, secretResource } from '../src/kubernetes/client/index.ts'
import { isReason } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')

describe('workers that join', () => {
  let oarlock: OarlockProcess
  let admin: Client
  let ca: string
  const dataDir = makeDataDir()
  const started: ChildProcess[] = []

  before(async () => {
    oarlock = await startOarlock(dataDir)
    admin = oarlock.client
    await admin.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External', lifecycle: 'Warm', slots: 2 } })
    for (const name of ['shop', 'other']) await admin.resource(namespaceResource).create({ metadata: { name } })
    ca = await (await admin.request({ method: 'GET', path: '/join/ca' })).text()
  })
  after(async () => {
    for (const child of started) child.kill('SIGKILL')
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  const cli = (...args: string[]) => runOarlock([...args, '--kubeconfig', oarlock.kubeconfig])
  const newToken = (...args: string[]) => newTokenOf('edge', ...args)
  const newTokenOf = async (pool: string, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli('token', 'create', '--pool', pool, ...args)
    equal(code, 0, stderr)
    return stdout.trim()
  }

  /** `oarlock worker` as on another machine: with the server's address and a token, without a certificate. */
  function startWorker(token: string, name: string, more: string[] = [], settings: NodeJS.ProcessEnv = {}) {
    const file = join(dataDir, `${name}.token`)
    writeFileSync(file, `${token}\n`, { mode: 0o600 })
    const home = join(dataDir, `machine-${name}`)
    const env = { PATH: process.env.PATH, OARLOCK_RUNS_DIR: join(home, 'runs'), OARLOCK_CACHE_DIR: join(home, 'cache'), ...settings }
    const child = spawn(process.execPath, [launcher, 'worker', '--server', admin.server, '--token-file', file, '--name', name, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env,
    })
    started.push(child)
    let output = ''
    child.stderr.setEncoding('utf8').on('data', text => (output += text))
    const exited = once(child, 'exit').then(([code]) => code as number | null)
    return { child, exited, output: () => output }
  }

  const joinedWorker = (name: string) =>
    eventually(
      async () => {
        const { items } = await admin.resource(workerResource).listAll()
        return items.find(({ metadata, status }) => metadata.name.startsWith(`${name}-`) && status !== undefined)
      },
      `${name} to join`,
      30_000,
    )

  /** A client with a worker's credential: what an attacker on the machine of a worker could do. */
  async function compromisedWorker(
    name: string,
    terms: string[] = [],
    labels?: Record<string, string>,
  ): Promise<{ worker: string; client: Client; credential: string }> {
    const { bootstrapWorker } = await joinTokens()
    const { worker, credential, pool } = await bootstrapWorker(admin.server, ca, await newToken('--uses', '1', ...terms), { name, labels })
    equal(pool, 'edge')
    const client = await createClient({ cluster: { server: admin.server, caCertificate: ca, token: credential } })
    return { worker, client, credential }
  }

  /** Creates a Run that is assigned to the worker, as dispatch does. */
  async function assignRun(
    namespace: string,
    stack: string,
    workerName: string,
    secret: string,
    isolation?: StackSpec['isolation'],
  ): Promise<Run> {
    const source = { inline: { files: { a: '' } } }
    const spec: StackSpec = { engine: 'command', source, command: { apply: ['true'] }, suspend: true, ...(isolation && { isolation }) }
    const { metadata } = await new StackFixture(admin, namespace).create(stack, spec)
    const secrets = admin.resource(secretResource)
    await secrets.create({ metadata: { name: secret, namespace }, stringData: { password: `of-${stack}` } })
    return await admin.resource(runResource).create({
      metadata: { name: `${stack}-1`, namespace },
      spec: {
        ...{ type: 'Apply', epoch: 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'edge', priority: 0, workerName },
        stackRef: { name: stack, uid: metadata.uid, generation: 1 },
        stack: { ...spec, variablesFrom: [{ secretRef: { name: secret } }] },
      },
    })
  }

  const expectRejected = async (
    what: string,
    attempt: () => Promise<unknown>,
    reasons: readonly string[] = ['Forbidden'],
  ): Promise<void> => {
    await rejects(attempt, (error: unknown) => {
      ok(isReason(error, ...(reasons as ['Forbidden'])), `${what}: ${(error as Error).message}`)
      return true
    })
  }

  function answerOf(path: string, headers: Record<string, string>): Promise<{ status: number }> {
    return new Promise((resolve, reject) => {
      get(new URL(path, admin.server), { ca, headers, agent: false }, response => {
        response.resume().on('end', () => resolve({ status: response.statusCode ?? 0 }))
      }).on('error', reject)
    })
  }

  test('a worker joins with only an address and a token, executes two Runs concurrently with their Secrets, and removes its Worker', async () => {
    const token = await newToken('--ttl', '1h')
    match(token, /^oarlock1\.[a-z0-9]{10}\.[\w-]{43}\.[\w-]{43}$/)
    // Only a hash is stored: the Secrets are not enough to join.
    const stored = await admin.resource(secretResource).listAll({ namespace: systemNamespace, labelSelector: 'oarlock.dev/join-token' })
    const texts = stored.items.flatMap(({ data = {} }) => Object.values(data).map(value => Buffer.from(value, 'base64').toString()))
    ok(!texts.some(text => text.includes(token.split('.')[2]!)))

    const { child, exited, output } = startWorker(token, 'vm1')
    const worker = await joinedWorker('vm1')
    deepEqual([worker.spec.pool, worker.spec.slots, worker.spec.lifecycle], ['edge', 2, 'Warm'])
    await admin.resource(secretResource).create({ metadata: { name: 'login', namespace: 'shop' }, stringData: { password: 'hunter22' } })
    const stacks = new StackFixture(admin, 'shop')
    const barrier = join(dataDir, 'barrier')
    // Each Run waits for the other, so they finish only if they run concurrently.
    const apply = (own: string, other: string) =>
      `touch ${barrier}-${own}; while [ ! -e ${barrier}-${other} ]; do sleep 0.02; done; echo "{\\"length\\":\${#OARLOCK_VAR_password}}" > $OARLOCK_OUTPUTS`
    for (const [own, other] of [
      ['left', 'right'],
      ['right', 'left'],
    ] as const) {
      await stacks.create(own, {
        engine: 'command',
        pool: 'edge',
        source: { inline: { files: { a: '' } } },
        command: { apply: ['sh', '-c', apply(own, other)] },
        variablesFrom: [{ secretRef: { name: 'login' } }],
      })
    }
    for (const name of ['left', 'right']) {
      const outputs = await eventually(
        async () => {
          const { items } = await admin.resource(runResource).listAll({ namespace: 'shop' })
          const run = items.find(({ spec, status }) => spec.stackRef.name === name && status?.phase === 'Succeeded')
          return run?.status?.outputs
        },
        `${name} to be applied: ${output()}`,
        60_000,
      )
      deepEqual(outputs, { length: 8 })
    }
    ok(!output().includes('hunter22'))
    child.kill('SIGTERM')
    equal(await exited, 0, output())
    equal(await admin.resource(workerResource).getOrUndefined(worker.metadata.name), undefined)
  })

  test('a worker of a pool without a lifecycle executes one Run after another; with --once it logs that it ends after its Run', async () => {
    await admin.resource(workerPoolResource).create({ metadata: { name: 'site' }, spec: { mode: 'External' } })
    const stacks = new StackFixture(admin, 'shop')
    const spec: StackSpec = { engine: 'command', pool: 'site', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }
    const warm = startWorker(await newTokenOf('site'), 'vm3')
    const { metadata } = await joinedWorker('vm3')
    for (const name of ['first', 'second']) {
      await stacks.create(name, spec)
      await stacks.untilReady(name)
      equal((await stacks.runsOf(name))[0]?.spec.workerName, metadata.name)
    }
    equal((await cli('drain', metadata.name)).code, 0)
    equal(await warm.exited, 0, warm.output())
    match(warm.output(), /"reason":"DrainRequested","runs":2,"message":"the worker ends: it was drained: /)

    const once = startWorker(await newTokenOf('site'), 'vm4', ['--once'])
    await stacks.create('third', spec)
    equal(await once.exited, 0, once.output())
    match(once.output(), /"reason":"OneShotCompleted","runs":1,"message":"the worker ends: its Run has ended, and with lifecycle OneShot /)
  })

  test('a compromised worker can access only what its own Runs reference', async () => {
    const { worker, client, credential } = await compromisedWorker('spy')
    const own = await assignRun('shop', 'own', worker, 'own-secret')
    const foreign = await assignRun('shop', 'foreign', 'other-worker', 'foreign-secret')
    const secrets = client.resource(secretResource)
    const runs = client.resource(runResource)
    const inputsOf = async (run: string, stack = run) =>
      await answerOf(`/state/shop/${stack}/run/${run}-1/inputs`, { authorization: `Bearer ${credential}`, 'oarlock-epoch': '1' })
    await eventually(async () => (await inputsOf('own')).status === 200, 'its own inputs')
    equal((await inputsOf('foreign')).status, 403)
    equal((await inputsOf('own', 'foreign')).status, 403)
    equal((await runs.get(own.metadata.name, { namespace: 'shop' })).spec.workerName, worker)

    await expectRejected('the Secret of its Run', () => secrets.get('own-secret', { namespace: 'shop' }))
    await expectRejected("another Run's Secret", () => secrets.get('foreign-secret', { namespace: 'shop' }))
    await expectRejected('all Secrets', () => secrets.listAll({ namespace: 'shop' }))
    await expectRejected('join tokens', () => secrets.listAll({ namespace: systemNamespace }))
    await expectRejected('another Run', () => runs.get(foreign.metadata.name, { namespace: 'shop' }))
    await expectRejected('all Runs', () => runs.listAll())
    await expectRejected("another's Runs", () => runs.listAll({ fieldSelector: 'spec.workerName=other-worker' }))
    await expectRejected("another Run's status", () =>
      runs.patchStatus(foreign.metadata.name, { status: { phase: 'Succeeded' } }, { namespace: 'shop' }),
    )
    await expectRejected('to give itself a Run', () =>
      runs.patch(foreign.metadata.name, { spec: { workerName: worker } }, { type: 'merge', namespace: 'shop' }),
    )
    await expectRejected('a Lease of a controller', () => client.resource(leaseResource).listAll({ namespace: systemNamespace }))
    await expectRejected('to make a Lease of another name', () =>
      client.resource(leaseResource).create({ metadata: { name: 'default-1', namespace: systemNamespace }, spec: {} }),
    )
    const workers = client.resource(workerResource)
    const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' } as const
    await expectRejected('to be another worker', () => workers.create({ metadata: { name: 'default-1' }, spec }))
    await expectRejected('to be of another pool', () => workers.create({ metadata: { name: worker }, spec: { ...spec, pool: 'default' } }))
    await workers.create({ metadata: { name: worker }, spec })
    await expectRejected('to move to another pool', () => workers.patch(worker, { spec: { pool: 'default' } }, { type: 'merge' }))
    await expectRejected('a token of a ServiceAccount, made by the server into a Secret', () =>
      secrets.create({
        metadata: { name: 'own-outputs', namespace: 'shop', annotations: { 'kubernetes.io/service-account.name': 'default' } },
        type: 'kubernetes.io/service-account-token',
      }),
    )
    const asked = (path: string, body?: unknown) => client.request({ method: body === undefined ? 'GET' : 'POST', path, body })
    /** The stores have other messages, so only the status code is compared. */
    const forbidden = async (path: string) => {
      const headers = { authorization: `Bearer ${credential}`, 'oarlock-epoch': '1' }
      equal((await answerOf(path, headers)).status, 403, path)
    }
    await expectRejected('a token of a ServiceAccount', () =>
      asked('/api/v1/namespaces/shop/serviceaccounts/default/token', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {},
      }),
    )
    for (const what of ['state', 'inventory', 'lock', 'inputs', 'outputs/own']) await forbidden(`/state/shop/foreign/run/foreign-1/${what}`)
    await forbidden('/state/shop/own/run/foreign-1/state')
    await forbidden('/logs/shop/foreign-1')
    await forbidden('/logs/shop/own-1')
    await expectRejected('a backup of everything', () => asked('/backup'))
    await expectRejected('Pods', () => asked('/api/v1/namespaces/shop/pods'))
    await client.close()
  })

  test('the join token decides about labels, and a worker cannot change its own', async () => {
    const terms = ['--label', 'site=west', '--allow-label', 'gpu', '--allow-label', 'disk=ssd']
    const wrong = startWorker(await newToken(...terms), 'greedy', ['--label', 'gpu=a100', '--label', 'secrets=all'])
    equal(await wrong.exited, 5)
    match(wrong.output(), /403: the join token does not allow label secrets=all: it sets site=west and allows gpu, disk=ssd/)
    const { child, exited, output } = startWorker(await newToken(...terms), 'modest', ['--label', 'gpu=a100'])
    const { metadata } = await joinedWorker('modest')
    const bucket = { 'oarlock.dev/worker-bucket': workerBucketOf(metadata.name) }
    deepEqual(metadata.labels, { 'oarlock.dev/pool': 'edge', site: 'west', gpu: 'a100', ...bucket })
    child.kill('SIGTERM')
    equal(await exited, 0, output())

    const { worker, client } = await compromisedWorker('spy-of-labels', terms, { disk: 'ssd' })
    const workers = client.resource(workerResource)
    const spec = { pool: 'edge', slots: 1, lifecycle: 'Warm' } as const
    const own = { site: 'west', disk: 'ssd' }
    await expectRejected('a label that it did not join with', () =>
      workers.create({ metadata: { name: worker, labels: { ...own, gpu: 'a100' } }, spec }),
    )
    await expectRejected('to leave one out', () => workers.create({ metadata: { name: worker }, spec }))
    await workers.create({ metadata: { name: worker, labels: own }, spec })
    for (const labels of [{ gpu: 'a100' }, { site: null }, { site: 'east' }])
      await expectRejected('other labels', () => workers.patch(worker, { metadata: { labels } }, { type: 'merge' }))
    await workers.delete(worker)
    // The account of a deleted worker is removed soon.
    await expectRejected(
      'other labels by registering again',
      () => workers.create({ metadata: { name: worker, labels: { site: 'east' } }, spec }),
      ['Forbidden', 'Unauthorized'],
    )
    await client.close()

    const { code, stderr } = await cli('token', 'create', '--pool', 'edge', '--label', 'oarlock.dev/pool=default')
    equal(code, 2)
    match(stderr, /the pool of the token sets the label oarlock\.dev\/pool/)
  })

  test('token create prints the command for the other machine, token list hides tokens that users did not create', async () => {
    const { stdout, stderr } = await cli('token', 'create', '--pool', 'edge')
    match(stderr, new RegExp(`run on the other machine: oarlock worker --server ${admin.server} --token-file FILE\n`))
    match(stderr, /hint: other machines cannot reach \S+; start "oarlock up" with --listen 0\.0\.0\.0:\d+ --tls-san NAME/)
    const { createJoinToken } = await joinTokens()
    const terms = { pool: 'edge', ttlMs: 60_000 }
    const ofPool = await createJoinToken(admin, ca, { ...terms, worker: 'edge-1', uses: 1 })
    const expired = await createJoinToken(admin, ca, { ...terms, nowMs: Date.now() - 61_000 })
    const list = await cli('token', 'list')
    match(list.stdout, new RegExp(`^${stdout.split('.')[1]} `, 'm'))
    equal(list.stdout.includes(ofPool.id) || list.stdout.includes(expired.id), false)
    match(list.stderr, /^\d+ tokens? (is|are) not listed: expired, or for workers that pools start; --all lists them too$/m)
    const all = await cli('token', 'list', '--all')
    for (const { id } of [ofPool, expired]) match(all.stdout, new RegExp(`^${id} `, 'm'))
  })

  test('a missing pool is reported with a command that lists pools', async () => {
    for (const args of [['token', 'create'], ['drain']]) {
      const { code, stderr } = await cli(...args, '--pool', 'nope')
      equal(code, 3)
      const [, command = ''] = /hint: "oarlock ([a-z ]+)" lists/.exec(stderr) ?? []
      const listed = await cli(...command.split(' '))
      match(listed.stdout, /^edge /m, stderr)
    }
  })

  test('a worker with settings of its own requires what its pool does, also of a Run without a policy', async () => {
    const pool = { metadata: { name: 'strict' }, spec: { mode: 'External', minimumIsolation: 'Sandbox' } } as const
    await admin.resource(workerPoolResource).create(pool)
    const settings = { OARLOCK_ENGINE_ENVIRONMENT: 'LANG', OARLOCK_ALLOWED_NETWORKS: 'Host', OARLOCK_DRAIN_GRACE: '1m' }
    const { exited, output } = startWorker(await newTokenOf('strict'), 'vm2', ['--once', '--slots', '1'], settings)
    const worker = await joinedWorker('vm2')
    const runs = admin.resource(runResource)
    const { metadata } = await assignRun('other', 'unprotected', worker.metadata.name, 'unprotected-secret', { level: 'Process' })
    equal(await exited, 0, output())
    const { status } = await runs.get(metadata.name, { namespace: 'other' })
    equal(status?.reason, 'PolicyViolation', JSON.stringify(status))
    match(status?.message ?? '', /^spec\.isolation\.level: Process is weaker than Sandbox, which this worker requires/)
  })

  test('a worker gets the Secrets of a Run only until it has ended', async () => {
    const { worker, client, credential } = await compromisedWorker('late')
    const run = await assignRun('other', 'brief', worker, 'brief-secret')
    const read = async () =>
      await answerOf(`/state/other/brief/run/${run.metadata.name}/inputs`, { authorization: `Bearer ${credential}`, 'oarlock-epoch': '1' })
    await eventually(async () => (await read()).status === 200, 'its inputs')
    const status = { phase: 'Succeeded' as const }
    await client.resource(runResource).patchStatus(run.metadata.name, { status }, { namespace: 'other' })
    equal((await read()).status, 403)
    await client.close()
  })

  test('revoking takes effect immediately, also on open connections, and the worker exits', async () => {
    const token = await newToken()
    const { exited, output } = startWorker(token, 'leaver')
    const worker = await joinedWorker('leaver')
    const spy = await compromisedWorker('other')
    const list = await cli('token', 'list')
    match(list.stdout, new RegExp(`${token.split('.')[1]} +edge +\\S+ +unlimited +1 +<none> +<none>\\n`))
    const { code, stdout } = await cli('token', 'revoke', token.split('.')[1]!)
    equal(code, 0)
    match(stdout, new RegExp(`worker/${worker.metadata.name}: credential revoked`))
    // It cannot renew its Lease, and exits as after a network partition (invariant 2).
    equal(await exited, 3, output())
    match(
      output(),
      /"reason":"CredentialRejected","runs":0,"message":"the worker ends: the API server rejects its credential, which was revoked/,
    )
    const again = startWorker(token, 'again')
    equal(await again.exited, 5)
    match(again.output(), /join token is invalid, expired, exhausted or revoked/)

    await spy.client.resource(workerPoolResource).get('edge')
    equal((await cli('worker', 'revoke', spy.worker)).code, 0)
    await expectRejected('anything', () => spy.client.resource(workerPoolResource).get('edge'), ['Unauthorized'])
    equal(await codeOfRenewal(spy.credential), 401)
    await spy.client.close()
  })

  test('rejects expired and exhausted tokens, and tokens of another server', async () => {
    const { bootstrapWorker, fetchPinnedCa, parseJoinToken } = await joinTokens()
    const once = await newToken('--uses', '1')
    const both = await Promise.allSettled([
      bootstrapWorker(admin.server, ca, once, { name: 'a' }),
      bootstrapWorker(admin.server, ca, once, { name: 'a' }),
    ])
    deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const brief = await newToken('--ttl', '1s')
    await eventually(
      async () =>
        await bootstrapWorker(admin.server, ca, brief, { name: 'b' }).then(
          () => false,
          () => true,
        ),
      'the token to expire',
    )
    const forged = { ...parseJoinToken(once)!, pin: 'x'.repeat(43) }
    await rejects(fetchPinnedCa(admin.server, forged), /is not the server of the join token/)
    const [, id, , pin] = once.split('.')
    await rejects(bootstrapWorker(admin.server, ca, `oarlock1.${id}.${'y'.repeat(43)}.${pin}`, { name: 'c' }), /returned 401/)
    const cut = startWorker(once.slice(0, -3), 'cut')
    equal(await cut.exited, 2)
    match(cut.output(), /join token is incomplete/)
  })

  async function codeOfRenewal(credential: string): Promise<number> {
    const client = await createClient({ cluster: { server: admin.server, caCertificate: ca, token: credential } })
    try {
      return (await client.request({ method: 'POST', path: '/join/renew', body: {} })).status
    } catch (error) {
      return (error as { code?: number }).code ?? 0
    } finally {
      await client.close()
    }
  }

  test('writes no token and no credential to the server log (invariant 9)', async () => {
    const token = await newToken()
    const { client, credential } = await compromisedWorker('quiet')
    await client.request({ method: 'POST', path: '/join', body: { token: token.replace(/.$/, '!') } }).catch(() => undefined)
    const log = readFileSync(join(dataDir, 'oarlock.log'), 'utf8')
    for (const secret of [token.split('.')[2]!, credential.split('.')[2]!]) ok(!log.includes(secret))
    await client.close()
  })
})
