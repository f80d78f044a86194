/** `state: External` with Pulumi's HTTP backend protocol, as of Pulumi Cloud: our own endpoint serves it, and the real CLI of PULUMI_BIN uses it. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { EngineContext } from '../../src/execution/engine/engine.ts'
import { EngineError } from '../../src/execution/engine/engine-error.ts'
import { createEngineHarness } from '../../src/execution/engine/engine-harness.testing.ts'
import { createPulumiEngine } from '../../src/execution/engine/pulumi/pulumi.ts'
import { createPulumiHandler, listenPulumi } from '../../src/execution/pulumi-backend/index.ts'
import { makeCertificate } from '../support/make-certificate.ts'
import { RecordingProxy } from './recording-proxy.ts'
import { createScriptedBackend } from './scripted-backend.ts'

const { PULUMI_BIN: pulumi } = process.env
const skip = pulumi === undefined && 'PULUMI_BIN is not set'
const accessToken = 'pul-0123456789abcdef'

const program = (ledger: string, seconds: number) => ({
  'Pulumi.yaml': `
name: slow
runtime: yaml
resources:
  slow:
    type: command:local:Command
    properties: { create: "echo begins >> ${ledger}; sleep ${seconds}" }
outputs:
  hidden: { "fn::secret": of the service }
`,
})

async function setUp(t: TestContext, seconds: number) {
  const backend = createScriptedBackend({}, {})
  const handler = createPulumiHandler({ backend, accessToken })
  const endpoint = await listenPulumi(handler)
  const proxy = new RecordingProxy(endpoint.url)
  const url = await proxy.listen()
  t.after(async () => {
    await proxy.close()
    await endpoint.close()
  })
  // Pulumi Cloud keeps what the CLI sends with an update; our endpoint has no use for it.
  const environments = () =>
    proxy.lines.flatMap(line => {
      if (line.kind !== 'exchange' || line.method !== 'POST' || !/\/dev\/(update|refresh|destroy)$/.test(line.path)) return []
      const { metadata, options } = JSON.parse(Buffer.from(line.body, 'base64').toString())
      return options?.dryRun === true ? [] : [metadata.environment as Record<string, string>]
    })
  const listUpdates = backend.listUpdates.bind(backend)
  backend.listUpdates = async (id, page) =>
    (await listUpdates(id, page)).map(each => {
      const isCompleted = backend.calls.some(call => call.startsWith(`completeUpdate ${backend.started[each.version - 1]?.number} `))
      return { ...each, environment: environments()[each.version - 1] ?? {}, ...(!isCompleted && { result: 'in-progress' as never }) }
    })
  const spec: EngineContext['spec'] = { engine: 'pulumi', state: 'External', pulumi: { pendingCreates: 'Clear' } }
  const env = {
    ...{ PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}`, PULUMI_BACKEND_URL: url, PULUMI_ACCESS_TOKEN: accessToken },
    PULUMI_DEFAULT_ORGANIZATION: 'apps',
  }
  const uid = '5f0d7c52-8f0e-4a44-9d3f-0f6f6f2c1d3e'
  const harness = await createEngineHarness(t, {}, { spec, env, stack: { namespace: 'default', name: 'dev', uid } })
  const ledger = join(harness.root, 'ledger')
  await harness.write(program(ledger, seconds))
  const engine = createPulumiEngine(process.env)
  const apply = async (context: EngineContext) => {
    await engine.prepare(context)
    return await engine.apply(context, await engine.plan(context))
  }
  return { harness, backend, engine, apply, ledger, uid }
}

async function until(check: () => boolean): Promise<void> {
  for (const end = performance.now() + 90_000; !check(); await delay(50)) ok(performance.now() < end, 'timeout')
}

/** The CLI with this argument. */
function pidWith(argument: string): number {
  const found = readdirSync('/proc').filter(name => {
    try {
      const [path = '', ...args] = /^[0-9]+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0') : []
      return path.endsWith('/pulumi') && args[0] === 'up' && args.includes(argument)
    } catch {
      return false
    }
  })
  return Number(found[0])
}

test('the update that an ended Run of the Stack has started is canceled, and the next one continues', { skip }, async t => {
  const { harness, backend, apply, ledger, uid } = await setUp(t, 5)
  const killed = rejects(apply(harness.context), EngineError)
  await until(() => existsSync(ledger))
  process.kill(pidWith(`--exec-agent=oarlock/${uid}/1`), 'SIGKILL')
  await killed
  const result = await apply(await harness.nextRun())
  deepEqual(result.outputs, { hidden: { value: 'of the service', sensitive: true } })
  equal(result.resources, 1)
  match(harness.log.join('\n'), /removed the lock of the backend that the Run with epoch 1 has left, which has ended/)
  deepEqual(
    backend.calls.filter(call => / cancelled$/.test(call)).length,
    1,
    backend.calls.filter(call => call.startsWith('completeUpdate')).join('\n'),
  )
})

test('an update that someone else has started stays, and is reported', { skip }, async t => {
  const { harness, backend, engine, apply } = await setUp(t, 0)
  await apply(harness.context)
  const url = harness.context.env.PULUMI_BACKEND_URL
  const call = async (path: string, body: object) => {
    const headers = { authorization: `token ${accessToken}`, accept: 'application/vnd.pulumi+9', 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/stacks/apps/slow/dev/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await response.text()
    ok(response.ok, text)
    return JSON.parse(text) as Record<string, unknown>
  }
  const metadata = { message: 'by hand', environment: { 'exec.kind': 'cli' } }
  const { updateID } = await call('destroy', { name: 'slow', runtime: 'yaml', config: {}, options: {}, metadata })
  await call(`update/${updateID}`, { tags: {}, journalVersion: 1 })
  const context = await harness.nextRun()
  await harness.write({ 'Pulumi.yaml': program(join(harness.root, 'other'), 0)['Pulumi.yaml'] })
  await engine.prepare(context)
  const plan = await engine.plan(context)
  await rejects(engine.apply(context, plan), (error: EngineError) => {
    equal(error.reason, 'StateLocked')
    match(
      error.message,
      /locked in its backend: destroy 2 is in progress since .*; it is not a lock that an ended Run of this Stack has left/,
    )
    return true
  })
  equal(
    backend.calls.some(each => / cancelled$/.test(each)),
    false,
  )
})

test('an address whose certificate a private CA has signed is trusted with SSL_CERT_FILE', { skip }, async t => {
  const { harness, engine } = await setUp(t, 0)
  const { path, cert, key } = makeCertificate(harness.root)
  const target = harness.context.env.PULUMI_BACKEND_URL
  const server = createServer({ cert, key }, (req, res) => {
    const forwarded = request(`${target}${req.url}`, { method: req.method ?? 'GET', headers: req.headers, agent: false }, response => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(res)
    })
    forwarded.once('error', () => res.destroy())
    req.pipe(forwarded)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  const env = { ...harness.context.env, PULUMI_BACKEND_URL: url }
  await rejects(engine.prepare(await harness.nextRun({ env })), /certificate|x509/)
  const trusting = await harness.nextRun({ env: { ...env, SSL_CERT_FILE: path } })
  await engine.prepare(trusting)
  equal((await engine.plan(trusting)).add, 1)
})
