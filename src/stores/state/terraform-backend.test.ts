// The state store with the real `terraform` (or `tofu`): as its HTTP backend, and with a streamed local state file.
import { deepStrictEqual, equal, match, ok } from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createStateHandler, openStateStore, StateClient, type StateStore, streamStateFile } from './index.ts'

const engine = ['terraform', 'tofu']
  .flatMap(name => (process.env.PATH ?? '').split(delimiter).map(directory => join(directory, name)))
  .find(path => existsSync(path))

type Result = { code: number; output: string }
type Setup = {
  store: StateStore
  url: string
  directory: string
  run(...args: string[]): Promise<Result>
  runWith(more: Record<string, string>, ...args: string[]): Promise<Result>
  env: Record<string, string>
}

async function withEngine(t: TestContext, work: (setup: Setup) => Promise<void>): Promise<void> {
  if (engine === undefined) return t.skip('neither terraform nor tofu is on the PATH')
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-terraform-'))
  const store = await openStateStore({ directory: join(directory, 'store'), key: Buffer.alloc(32, 7) })
  const handler = createStateHandler({
    store,
    isLockAbandoned: async () => false,
    authorize: async ({ basicPassword = '', runName }) => {
      if (runName !== undefined && basicPassword === 'worker') return { allowed: true, stackUid: 'uid', access: 'run' }
      if (await store.checkStackToken('uid', basicPassword)) return { allowed: true, stackUid: 'uid', access: 'user' }
      return { allowed: false, code: 403, message: 'wrong token' }
    },
  })
  const server = createServer((req, res) => void handler(req, res, { user: undefined }))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: directory, TF_IN_AUTOMATION: '1', CHECKPOINT_DISABLE: '1' },
    ...{
      TF_HTTP_ADDRESS: `${url}/state/apps/net`,
      TF_HTTP_LOCK_ADDRESS: `${url}/state/apps/net`,
      TF_HTTP_UNLOCK_ADDRESS: `${url}/state/apps/net`,
    },
    ...{ TF_HTTP_USERNAME: 'oarlock', TF_HTTP_PASSWORD: await store.stackToken('uid'), TF_HTTP_RETRY_MAX: '0' },
  }
  const runWith = (more: Record<string, string>, ...args: string[]) =>
    new Promise<Result>(resolve => {
      execFile(engine, [...args, '-no-color'], { cwd: directory, env: { ...env, ...more } }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr })
      })
    })
  const run = (...args: string[]) => runWith({}, ...args)
  try {
    await work({ store, url, directory, run, runWith, env })
  } finally {
    server.closeAllConnections()
    server.close()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const resources = (count: number) => `
  resource "terraform_data" "server" {
    count = ${count}
    input = "server-\${count.index}"
    provisioner "local-exec" { command = "sleep 0.0\${count.index % 7}" }
  }`

test('serves terraform as HTTP backend: init, apply, second apply, state list, lock conflict, force-unlock', { timeout: 60_000 }, t =>
  withEngine(t, async ({ store, directory, run, runWith, env }) => {
    const succeed = async (...args: string[]) => {
      const { code, output } = await run(...args)
      equal(code, 0, `${args.join(' ')}: ${output}`)
      return output
    }
    writeFileSync(join(directory, 'main.tf'), `terraform {\n  backend "http" {}\n}\n${resources(3)}`)
    await succeed('init', '-input=false')
    match(await succeed('apply', '-auto-approve', '-input=false'), /3 added, 0 changed, 0 destroyed/)
    match(await succeed('apply', '-auto-approve', '-input=false'), /0 added, 0 changed, 0 destroyed/)
    match((await run('state', 'list')).output, /terraform_data\.server\[0\]\nterraform_data\.server\[1\]\nterraform_data\.server\[2\]/)
    equal(await store.currentLock('uid'), undefined)

    await store.lock({ stackUid: 'uid', holder: { kind: 'Run', runName: 'net-ab12c-7', epoch: 7 } }, async () => false)
    const held = await run('apply', '-auto-approve', '-input=false')
    equal(held.code, 1)
    match(held.output, /Error acquiring the state lock/)
    match(held.output, /already locked:\s+ID=oarlock-run-net-ab12c-7/)
    const force = (id: string) => runWith({ TF_HTTP_UNLOCK_ADDRESS: `${env.TF_HTTP_ADDRESS}?ID=${id}` }, 'force-unlock', '-force', id)
    equal((await force('oarlock-run-net-ab12c-7')).code, 1)
    await store.unlock({ stackUid: 'uid', holder: { kind: 'Run', runName: 'net-ab12c-7', epoch: 7 } })

    const info = {
      ID: '6e3b7a6e-0000-4000-8000-000000000001',
      Who: 'ada@host',
      Operation: 'OperationTypeApply',
      Created: '2026-11-21T09:00:00Z',
    }
    await store.lock({ stackUid: 'uid', holder: { kind: 'User', id: info.ID, who: info.Who, info } }, async () => false)
    match((await run('apply', '-auto-approve', '-input=false')).output, /already locked:\s+ID=6e3b7a6e/)
    // Terraform does not send the ID unless the address has it; OpenTofu does.
    if (engine?.endsWith('terraform')) equal((await run('force-unlock', '-force', info.ID)).code, 1)
    equal((await force('6e3b7a6e-0000-4000-8000-000000000002')).code, 1)
    equal((await store.currentLock('uid'))?.holder.kind, 'User')
    const forced = await force(info.ID)
    equal(forced.code, 0, forced.output)
    equal(await store.currentLock('uid'), undefined)
    match(await succeed('destroy', '-auto-approve', '-input=false'), /3 destroyed/)
  }),
)

test('stores every version of a local state file while the apply runs', { timeout: 60_000 }, t =>
  withEngine(t, async ({ url, directory, run, env }) => {
    writeFileSync(join(directory, 'main.tf'), resources(20))
    equal((await run('init', '-input=false')).code, 0)
    const statePath = join(directory, 'state.json')
    const client = new StateClient({ baseUrl: url, token: 'worker', namespace: 'apps', stack: 'net', runName: 'net-1', epoch: 1 })
    await client.lock()
    const acknowledged: { resources: number; tookMs: number }[] = []
    const stream = streamStateFile({
      path: statePath,
      onError: error => t.diagnostic(String(error)),
      upload: async bytes => {
        const startMs = performance.now()
        await client.write(bytes)
        const state = JSON.parse(bytes.toString()) as { resources: { instances: unknown[] }[] }
        acknowledged.push({ resources: state.resources[0]?.instances.length ?? 0, tookMs: performance.now() - startMs })
      },
    })
    try {
      const child = spawn(engine ?? '', ['apply', '-auto-approve', '-input=false', '-no-color', '-parallelism=3', `-state=${statePath}`], {
        ...{ cwd: directory, env, stdio: 'ignore' },
      })
      const [code] = (await once(child, 'close')) as [number]
      equal(code, 0)
      await stream.flush()
    } finally {
      stream.close()
    }
    const newest = await client.read()
    deepStrictEqual(newest?.bytes, readFileSync(statePath))
    equal(acknowledged.at(-1)?.resources, 20)
    const counts = acknowledged.map(one => one.resources)
    deepStrictEqual(
      counts,
      counts.toSorted((a, b) => a - b),
    )
    // How many depends on how fast the engine writes; the last one alone would be stored after the apply.
    ok(acknowledged.length >= 2, `${acknowledged.length} versions`)
    const tookMs = acknowledged.map(one => one.tookMs).sort((a, b) => a - b)
    t.diagnostic(
      `${acknowledged.length} versions acknowledged for 20 resources, upload median ${tookMs[tookMs.length >> 1]?.toFixed(1)} ms`,
    )
    await client.unlock()
    await client.close()
  }),
)
