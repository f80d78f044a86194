/**
 * Malformed and valid requests to the endpoints beside the API: join, state, plan, log, queue, backup, metrics; on the port and the Unix
 * socket of the API server, on the listeners of separate roles and on plain HTTP. And those of a worker's heartbeat, with the rules for workers;
 * test/reliability/fuzz.test.ts does the same with the rest of the API.
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { eventually } from '../support/eventually.ts'
import { encodeEndpointRequest } from './encode-endpoint-request.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import type { Endpoints, MemoryReport } from './endpoint-server.ts'
import { type Target, targets } from './endpoint-targets.ts'
import { FuzzClient, type FuzzResponse } from './fuzz-client.ts'

/** The full run has 100,000 for each target: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz-endpoints.test.ts */
const requests = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 300)
const seed = Number(process.env.OARLOCK_TEST_SEED ?? 20_261)
const isFullRun = requests >= 10_000
const connections = 8

const running: Server[] = []
after(async () => {
  for (const server of running) await server.stop()
})

for (const mode of ['stores', 'up'] as const) {
  describe(`endpoints of ${mode === 'up' ? 'oarlock up' : 'stores and join service'}`, () => {
    for (const target of targets.filter(each => each.mode === mode)) {
      test(`${target.name}: ${requests} requests, no crash, no 5xx${isFullRun ? ', flat memory' : ''}`, {
        timeout: 3_600_000,
      }, async () => {
        const server = running.find(each => each.mode === mode) ?? (await startEndpointServer(mode))
        await attack(target, server)
      })
    }
  })
}

async function attack(target: Target, server: Server): Promise<void> {
  const { endpoints, child } = server
  const clients = Array.from({ length: connections }, () =>
    Object.fromEntries(Object.entries(endpoints.addresses).map(([name, address]) => [name, new FuzzClient(address)])),
  )
  const close = () => {
    for (const client of clients.flatMap(each => Object.values(each))) client.close()
  }
  const statuses = new Map<number, number>()
  const memory: MemoryReport[] = []
  let sent = 0
  const send = async (request: EndpointRequest, client: FuzzClient) => {
    try {
      const { bytes, expectation } = encodeEndpointRequest(request, endpoints)
      const responses = await client.send(bytes, expectation, request.method === 'HEAD')
      for (const response of responses) {
        checkResponse(response, endpoints)
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      }
      if (responses.length === 0) statuses.set(0, (statuses.get(0) ?? 0) + 1)
      ok(child.exitCode === null && child.signalCode === null, 'the process has ended')
    } catch (error) {
      const printed = JSON.stringify(request, (_, value) =>
        typeof value === 'string' && value.length > 2_000 ? `${value.slice(0, 2_000)}…` : value,
      )
      throw new Error(`seed ${seed}: ${printed}: ${(error as Error).message}\n${server.errors()}`, { cause: error })
    }
  }
  const victim = await server.readVictim()
  await server.memory()
  const descriptors = server.descriptors()
  try {
    for (let part = 0; sent < requests; part++) {
      const batch = fc.sample(target.requests, { seed: seed + part, numRuns: Math.min(2_000, requests - sent) })
      await Promise.all(
        clients.map(async addresses => {
          for (let request = batch.pop(); request; request = batch.pop()) {
            await send(request, addresses[request.address]!)
            sent++
          }
        }),
      )
      await server.reset()
      memory.push(await server.memory())
    }
    close()
    deepEqual(await server.readVictim(), victim, 'data of another Stack has changed')
    await eventually(() => server.descriptors() <= descriptors + 2, `${server.descriptors()} open files to become ${descriptors}`)
    equal(server.errors(), '')
    const succeeded = [...statuses].filter(([status]) => status >= 200 && status < 300).reduce((sum, [, count]) => sum + count, 0)
    ok(succeeded > requests / 50, `few requests were valid: ${formatStatuses(statuses)}`)
    if (isFullRun) checkMemory(memory)
  } finally {
    close()
    const megabytes = (values: number[]) => values.map(value => Math.round(value / 1_048_576)).join(' ')
    if (isFullRun) {
      console.log(`${target.name}: ${sent} requests, seed ${seed}; responses ${formatStatuses(statuses)}`)
      console.log(
        `  heap in MB ${megabytes(memory.map(each => each.heapBytes))}; RSS in MB ${megabytes(memory.map(each => each.rssBytes))}`,
      )
    }
  }
}

const formatStatuses = (statuses: ReadonlyMap<number, number>): string =>
  [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${status === 0 ? 'none' : status}: ${count}`)
    .join(', ')

/** The second half needs no more than the first, which fills caches. */
function checkMemory(memory: readonly MemoryReport[]): void {
  const half = Math.floor(memory.length / 2)
  for (const [field, factor] of [
    ['heapBytes', 1.15],
    ['rssBytes', 1.25],
  ] as const) {
    const values = memory.map(each => each[field])
    ok(Math.max(...values.slice(half)) < Math.max(...values.slice(0, half)) * factor, `${field} grows: ${values}`)
  }
}

/** No 5xx but 501, which is the response to what HTTP allows and this server does not implement; an error is explained; no credential is repeated. */
function checkResponse({ status, headers, body }: FuzzResponse, { credentials, joinTokens }: Endpoints): void {
  ok(status < 500 || status === 501, `status ${status}: ${body.slice(0, 1_000)}`)
  if (status < 400) return
  const type = headers.get('content-type') ?? ''
  const isExplained =
    body === ''
      ? true
      : type.startsWith('application/json')
        ? isDocumentedError(JSON.parse(body), status)
        : type.startsWith('text/plain') && body.length < 2_000
  ok(isExplained, `undocumented error ${status} ${type}: ${body.slice(0, 1_000)}`)
  for (const secret of [...Object.values(credentials), ...Object.values(joinTokens)])
    ok(!body.includes(secret), `the error repeats a credential: ${body}`)
}

/** Those of Kubernetes, of the stores, of the join service, and Terraform's lock info. */
function isDocumentedError(value: unknown, status: number): boolean {
  const { kind, code, message, error, ID } = value as Record<string, unknown>
  if (status === 423 && typeof ID === 'string') return true
  if (typeof error === 'object')
    return typeof (error as { code: unknown }).code === 'string' && typeof (error as { message: unknown }).message === 'string'
  return code === status && typeof message === 'string' && (kind === undefined || kind === 'Status')
}

type Server = {
  readonly mode: Target['mode']
  readonly child: ChildProcess
  readonly endpoints: Endpoints
  /** What it wrote to stderr. */
  errors(): string
  memory(): Promise<MemoryReport>
  descriptors(): number
  /** Deletes what the requests have created, so that its amount does not dominate the measured memory. */
  reset(): Promise<void>
  readVictim(): Promise<unknown>
  stop(): Promise<void>
}

async function startEndpointServer(mode: Target['mode']): Promise<Server> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-fuzz-'))
  const child = fork(join(import.meta.dirname, 'endpoint-server.ts'), [mode, dataDir], {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let errors = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    errors = (errors + text).slice(-8_000)
  })
  const exited = once(child, 'exit')
  const message = async <T>() => {
    const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)])
    if (!first) throw new Error(`the process ended: ${errors}`)
    return first[0] as T
  }
  const endpoints = await message<Endpoints>()
  const { addresses, stackUid } = endpoints
  const stores = await Promise.all(
    [...new Set([addresses.api!, addresses.stores ?? addresses.api!])].map(
      async server => await createClient({ cluster: { server, token: endpoints.credentials.admin!, insecureSkipTlsVerify: true } }),
    ),
  )
  /** Those of requests. The credential that the requests use was obtained with another token. */
  const joinedWith = `oarlock.dev/join-token=${endpoints.joinTokens.valid?.split('.')[1]}`
  const server: Server = {
    ...{ mode, child, endpoints, errors: () => errors },
    memory: async () => {
      child.send('memory')
      return await message<MemoryReport>()
    },
    descriptors: () => readdirSync(`/proc/${child.pid}/fd`).length,
    reset: async () => {
      for (const client of stores) await call(client, 'DELETE', `/state/apps/app/data?uid=${stackUid}`)
      if (mode === 'stores') await call(stores[0]!, 'DELETE', `/api/v1/namespaces/oarlock-workers/secrets?labelSelector=${joinedWith}`)
    },
    readVictim: async () => {
      const paths = [
        '/state/other/victim',
        '/state/other/victim/versions',
        '/state/other/victim/orphans',
        '/state/other/victim/lock',
        '/logs/other/run-1',
      ]
      const objects = [
        '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases/victim',
        '/apis/oarlock.dev/v1alpha1/workers/victim',
        '/apis/oarlock.dev/v1alpha1/namespaces/other/stacks/victim',
      ]
      const victim = await Promise.all([
        ...stores.flatMap(client => paths.map(path => call(client, 'GET', path))),
        ...(mode === 'stores' ? objects.map(path => call(stores[0]!, 'GET', path)) : []),
      ])
      // What is missing cannot be changed.
      for (const { status, body } of victim) ok(status === 200 && body.length > 2, `${status} ${body}`)
      return victim
    },
    stop: async () => {
      await Promise.all(stores.map(client => client.close()))
      child.kill('SIGKILL')
      await exited
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  running.push(server)
  for (const client of stores) {
    await call(client, 'POST', '/state/other/victim', '{"version":4,"serial":9}')
    await call(client, 'LOCK', '/state/other/victim', '{"ID":"theirs"}')
    await call(client, 'POST', '/logs/other/run-1?offset=0', 'a line\n')
  }
  return server
}

async function call(client: Client, method: string, path: string, body?: string): Promise<{ status: number; body: string }> {
  const response = await client.request({ method: method as 'GET', path, ...(body !== undefined && { body: Buffer.from(body) }) })
  return { status: response.status, body: await response.text() }
}
