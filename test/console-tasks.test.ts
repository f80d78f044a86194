/** Large states and long YAML in the console of a real all-in-one, which runs in this process with its controllers. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Agent, fetch, type Response } from 'undici'
import { stackResource } from '../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../src/app/index.ts'
import type {
  ResourceDetails,
  Session,
  StackResources,
  StackYaml,
  StateDiff,
  StateVersions,
  YamlResult,
} from '../src/console/protocol/index.ts'
import { type CallTasks, Offload } from '../src/console/server/offload/index.ts'
import { largeState } from '../src/console/server/offload/large-state.testing.ts'
import { performTask, type TaskRequest } from '../src/console/server/offload/stack-tasks.ts'
import { editYaml } from '../src/console/server/stack/edit-yaml.ts'
import type { StackRequest } from '../src/console/server/stack/stack-request.ts'
import { StoredState } from '../src/console/server/stack/stored-state.ts'
import { createClient } from '../src/kubernetes/client/index.ts'
import { StatusError } from '../src/kubernetes/object/index.ts'
import { cpuMs } from './support/cpu-ms.ts'
import { eventually } from './support/eventually.ts'
import { followStartedProcesses } from './support/started-processes.ts'

const namespace = 'default'
const name = 'large'
/** Of 5 MiB each. */
const states = ['old', 'new'].map(value => largeState(200_000, value)) as [string, string]
const maxYamlLength = 256 * 1024

describe('the console with large states and long YAML', { timeout: 240_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-tasks-'))
  const processes = followStartedProcesses()
  let app: AllInOne
  let headers: Record<string, string>

  before(async () => {
    const port = { host: '127.0.0.1', port: 0 }
    const launcher = [process.execPath, join(import.meta.dirname, '..', 'bin', 'oarlock.js')]
    app = await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher, version: 'test' })
    // The stores are reached through the listener, not in the process.
    const client = await createClient({ kubeconfig: app.kubeconfigPath })
    const spec = { engine: 'terraform', suspend: true, source: { inline: { files: { 'main.tf': '' } } } } as const
    await client.resource(stackResource).create({ metadata: { name, namespace }, spec })
    const stored = new StoredState({ client, namespace, name })
    for (const state of states) await stored.write('terraform', 'ann', 'a test', async () => state)
    await client.close()
    headers = await signIn()
  })
  after(async () => {
    processes.stop()
    await app?.stop({ graceMs: 1_000 })
    rmSync(dataDir, { recursive: true, force: true })
  })

  const consoleProcesses = () => processes.running().flatMap(child => child.spawnargs.filter(arg => arg.startsWith('oarlock-console-')))

  const api = () => `${app.httpUrl}/console/api/`
  async function signIn(): Promise<Record<string, string>> {
    const json = { 'content-type': 'application/json' }
    const body = JSON.stringify({ link: new URL(app.consoleLink()).hash.replace('#token=', '') })
    const response = await fetch(`${api()}session`, { method: 'POST', headers: json, body })
    const cookie = (response.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
    return { cookie, 'x-oarlock-csrf': ((await response.json()) as Session).csrfToken, ...json }
  }
  // Without connections that are kept: the server, in the same thread, closes them while a test computes, before the client knows it.
  const dispatcher = new Agent({ pipelining: 0 })
  const get = async (part: string, signal?: AbortSignal) =>
    await fetch(`${api()}stacks/${namespace}/${name}/${part}`, { headers, dispatcher, ...(signal && { signal }) })
  const post = async (path: string, body: object) =>
    await fetch(`${api()}${path}`, { method: 'POST', headers, dispatcher, body: JSON.stringify(body) })

  async function read<Part>(response: Response): Promise<Part> {
    const text = await response.text()
    equal(response.status, 200, text.slice(0, 500))
    return JSON.parse(text) as Part
  }

  /** Resolves with the CPU time of this thread, which runs the controllers, while `run` waits for the console. Other processes hardly change it. */
  async function mainCpuMs(t: TestContext, run: () => Promise<unknown>): Promise<number> {
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const start = process.threadCpuUsage()
    await run()
    const { user, system } = process.threadCpuUsage(start)
    delay.disable()
    const usedMs = (user + system) / 1_000
    t.diagnostic(`${Math.round(usedMs)} ms of CPU time, the event loop was blocked for at most ${Math.round(delay.max / 1e6)} ms`)
    return usedMs
  }
  const inlineCpuMs = (name: TaskRequest['name'], ...args: unknown[]) => cpuMs(() => performTask({ name, args }))

  /** {@link mainCpuMs} of a request, and its answer. The limit of a task is in real time: one that other processes have slowed down is repeated. */
  const measured = async <Part>(t: TestContext, request: () => Promise<Response>) =>
    await eventually(
      async () => {
        let part: Part | undefined
        const usedMs = await mainCpuMs(t, async () => {
          const response = await request()
          if (response.status === 413) await response.text()
          else part = await read<Part>(response)
        })
        return part !== undefined && { part, usedMs }
      },
      'an answer within the limit',
      90_000,
    )

  test('a comparison ends when its browser goes away', async () => {
    const cut = new AbortController()
    const response = get('diff?values=1', cut.signal).catch((error: Error) => error.name)
    await eventually(() => consoleProcesses().length > 0, 'the process')
    cut.abort()
    equal(await response, 'AbortError')
    await eventually(() => consoleProcesses().length === 0, 'the end of the process')
  })

  test('two states are compared in a process', async t => {
    const { versions } = await read<StateVersions>(await get('versions'))
    const [to, from] = versions.map(({ version }) => version)
    const { part: diff, usedMs } = await measured<StateDiff>(t, () => get(`diff?from=${from}&to=${to}&values=1`))
    deepEqual([diff.from, diff.to, diff.resources.length], [from, to, 1])
    const inlineMs = inlineCpuMs('diffStates', ...states, { to: 2, withValues: true })
    ok(usedMs < inlineMs / 2, `${usedMs} ms, and ${inlineMs} ms without a process`)
  })

  test('the resources of a state are found in a process', async t => {
    const { part: found, usedMs } = await measured<StackResources>(t, () => get('resources'))
    deepEqual([found.format, found.total, found.resources[0]?.address], ['terraform', 1, 'a.b'])
    const inlineMs = inlineCpuMs('resourcesIn', states[0], 1)
    ok(usedMs < inlineMs, `${usedMs} ms, and ${inlineMs} ms without a process`)
  })

  test('the attributes of a resource are found in a process', async t => {
    let found: ResourceDetails | undefined
    const usedMs = await mainCpuMs(t, async () => {
      found = await read<ResourceDetails>(await get('resource?address=a.b'))
    })
    deepEqual([found?.objects[0]?.attributes[0], (found?.objects[0]?.more ?? 0) > 199_000], [{ name: 'k0', text: 'new 0' }, true])
    const inlineMs = inlineCpuMs('attributesOf', states[0], 'a.b')
    ok(usedMs < inlineMs, `${usedMs} ms, and ${inlineMs} ms without a process`)
  })

  test('a rollback raises the serial of a state in a process', async t => {
    const { versions } = await read<StateVersions>(await get('versions'))
    const [current, older] = versions.map(({ version }) => version)
    const request = { action: 'rollback', namespace, name, version: older, currentVersion: current, confirmation: name }
    const { part: result, usedMs } = await measured<{ message: string }>(t, () => post('actions', request))
    match(result.message, /is the current state/)
    const inlineMs = inlineCpuMs('withNewerSerial', ...states)
    ok(usedMs < inlineMs / 2, `${usedMs} ms, and ${inlineMs} ms without a process`)
  })

  test('states that need too much memory or nest too deeply are rejected, and the next comparison works', async t => {
    const isLimit = /^413 reading these versions of the state takes more than (256 MB of memory|5 s): use "oarlock state pull"$/
    const isDeep = /^413 the state nests deeper than 500 levels: use "oarlock state pull"$/
    const ofInstances = (instances: string) =>
      `{"version":4,"serial":2,"lineage":"a","outputs":{},"resources":[{"type":"a","name":"b","instances":[${instances}]}]}`
    const hostile = [
      // In a thread, V8 aborts the whole process for this one.
      [ofInstances(`${'{},'.repeat(5_500_000)}{}`), isLimit],
      [ofInstances(`{"sensitive_attributes":[${'[],'.repeat(5_500_000)}[]]}`), /^200 |^413 reading/],
      [`{"x":${'['.repeat(8_000_000)}${']'.repeat(8_000_000)}}`, isDeep],
    ] as const
    const client = await createClient({ kubeconfig: app.kubeconfigPath })
    const stored = new StoredState({ client, namespace, name })
    const kept = (await stored.versions())[0]?.version
    for (const [state, expected] of hostile) {
      const version = await stored.write('terraform', 'ann', 'a test', async () => state)
      for (const part of [`diff?from=${kept}&to=${version}`, 'resources', 'resource?address=a.b']) {
        const response = await get(part)
        const { message = '' } = (await response.json()) as { readonly message?: string }
        match(`${response.status} ${message}`, expected)
      }
    }
    await stored.write('terraform', 'ann', 'a test', async () => states[0])
    await client.close()
    equal((await measured<StackResources>(t, () => get('resources'))).part.total, 1)
    equal((await measured<StateDiff>(t, () => get(`diff?from=${kept}&to=${kept}`))).part.resources.length, 0)
  })

  test('long YAML is parsed in a process, and what is wrong with it is found there', async t => {
    const { yaml, resourceVersion } = await read<StackYaml>(await get('yaml'))
    const length = maxYamlLength - yaml.length - 10
    const texts = [
      [`x: [${'1,'.repeat(length / 2)}1]\n`, /at most 100000 fields/],
      [`x: ${'['.repeat(length)}\n`, /nests too deeply/],
      [Array.from({ length: 9_000 }, (_, index) => `k${index}: 1\n`).join(''), /unknown field/],
      ['# a comment\n'.repeat(length / 12), /^$/],
    ] as const
    let usedMs = 0
    for (const [added, message] of texts) {
      const body = { yaml: yaml + added, resourceVersion }
      const { part: result, usedMs: ofText } = await measured<YamlResult>(t, () => post(`stacks/${namespace}/${name}/yaml`, body))
      match(result.ok ? '' : (result.problems[0]?.message ?? 'unknown'), message)
      usedMs += ofText
    }
    const inlineMs = texts.reduce((sum, [added]) => sum + inlineCpuMs('parseStackYaml', yaml + added, { namespace, name }), 0)
    ok(usedMs < inlineMs / 2, `${usedMs} ms, and ${inlineMs} ms without a process`)
  })

  test('an edit that was applied is reported as applied, also if it cannot be compared', async () => {
    const { yaml, resourceVersion } = await read<StackYaml>(await get('yaml'))
    const edit = async (apply: boolean) => {
      const tasks = {
        yaml: async (task, ...args) => {
          if (task === 'diffStacks') throw new StatusError('RequestEntityTooLarge', 'no time')
          return await realTasks.yaml(task, ...args)
        },
      } as CallTasks
      const body = async () => ({ yaml: yaml.replace('metadata:', 'metadata:\n  labels: { edited: applied }'), resourceVersion, apply })
      return await editYaml({ client: app.client, namespace, name, tasks, body } as StackRequest)
    }
    const own = new Offload()
    const realTasks = own.of({ user: 'ann', signal: new AbortController().signal })
    await rejects(edit(false), { message: 'no time' })
    const result = await edit(true)
    deepEqual([result.ok, result.ok && result.applied, result.ok && result.diff], [true, true, [{ sign: '…', text: '' }]])
    equal((await app.client.resource(stackResource).get(name, { namespace })).metadata.labels?.edited, 'applied')
    await own.close()
  })

  test('no process is left when the console is closed', async () => {
    const cut = get('diff?values=1').catch(() => 'cut')
    const isComparing = ({ spawnargs }: ChildProcess) => spawnargs.includes('oarlock-console-states')
    const { pid } = await eventually(() => processes.running().find(isComparing), 'the process')
    // So that it has not answered when the console is closed, which follows the controllers.
    process.kill(pid as number, 'SIGSTOP')
    await app.stop({ graceMs: 1_000 })
    equal(await cut, 'cut')
    deepEqual(consoleProcesses(), [])
  })
})
