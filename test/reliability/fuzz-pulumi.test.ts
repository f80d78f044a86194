/** Malformed and valid requests to the endpoint of the Pulumi CLI, with its tokens and without. */
import { equal, ok } from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { encodeEndpointRequest } from './encode-endpoint-request.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import type { Endpoints, MemoryReport } from './endpoint-server.ts'
import { FuzzClient, type FuzzResponse } from './fuzz-client.ts'
import type { PulumiTargets } from './pulumi-endpoint-child.ts'
import { pulumiRequests } from './pulumi-requests.ts'

/** The full run has 100,000: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz-pulumi.test.ts */
const requests = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 1_000)
const seed = Number(process.env.OARLOCK_TEST_SEED ?? 20_264)
const isFullRun = requests >= 10_000
const connections = 8
/** Requests until updates are started again, because some requests end them. */
const partSize = 250

let child: ChildProcess | undefined
after(async () => {
  if (!child) return
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
})

test(`endpoint of the Pulumi CLI: ${requests} requests, no crash, no 5xx${isFullRun ? ', flat memory' : ''}`, {
  timeout: 3_600_000,
}, async () => {
  const running = fork(join(import.meta.dirname, 'pulumi-endpoint-child.ts'), {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  child = running
  let errors = ''
  running.stderr!.setEncoding('utf8').on('data', text => {
    errors = (errors + text).slice(-8_000)
  })
  const exited = once(running, 'exit').then(() => undefined)
  const receive = async <T>(): Promise<T> => {
    const first = await Promise.race([once(running, 'message'), exited])
    if (!first) throw new Error(`the process ended: ${errors}`)
    return first[0] as T
  }
  const ask = async <T>(question: 'reset' | 'memory'): Promise<T> => {
    running.send(question)
    return await receive<T>()
  }
  await receive()

  const statuses = new Map<number, number>()
  const memory: MemoryReport[] = []
  for (let sent = 0; sent < requests; sent += partSize) {
    const targets = await ask<PulumiTargets>('reset')
    const batch = fc.sample(pulumiRequests, { seed: seed + sent, numRuns: partSize })
    await Promise.all(
      Array.from({ length: connections }, async () => {
        const client = new FuzzClient(targets.url)
        for (let request = batch.pop(); request; request = batch.pop()) await send(client, request, targets)
        client.close()
      }),
    )
    if ((sent / partSize) % 8 === 7) memory.push(await ask<MemoryReport>('memory'))
  }
  // A valid request is still served.
  const targets = await ask<PulumiTargets>('reset')
  const client = new FuzzClient(targets.url)
  const last = `GET /api/stacks/apps/web/dev HTTP/1.1\r\nHost: x\r\nAuthorization: token ${targets.accessToken}\r\n\r\n`
  equal((await client.send(Buffer.from(last), 'one', false))[0]?.status, 200)
  client.close()
  equal(errors, '')
  const count = (test: (status: number) => boolean) => [...statuses].filter(([status]) => test(status)).reduce((sum, [, n]) => sum + n, 0)
  const summary = [...statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${status}: ${n}`)
  ok(count(status => status >= 200 && status < 300) > requests / 20, `few requests were valid: ${summary}`)
  if (isFullRun) {
    const megabytes = (values: number[]) => values.map(each => Math.round(each / 1_048_576)).join(' ')
    console.log(`${requests} requests, seed ${seed}; responses ${summary.join(', ')}`)
    console.log(`  heap in MB ${megabytes(memory.map(each => each.heapBytes))}; RSS in MB ${megabytes(memory.map(each => each.rssBytes))}`)
    checkMemory(memory)
  }

  async function send(client: FuzzClient, request: EndpointRequest, targets: PulumiTargets): Promise<void> {
    try {
      const { bytes, expectation } = encodeEndpointRequest(fill(request, targets), noEndpoints)
      const responses = await client.send(bytes, expectation, request.method === 'HEAD')
      for (const response of responses) {
        checkResponse(response, targets)
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      }
      ok(running.exitCode === null && running.signalCode === null, 'the process has ended')
    } catch (error) {
      const printed = JSON.stringify(request, (_, each) => (typeof each === 'string' ? each.slice(0, 2_000) : each))
      throw new Error(`seed ${seed}: ${printed}: ${(error as Error).message}\n${errors}`, { cause: error })
    }
  }
})

/** Nothing that encodeEndpointRequest would fill in. */
const noEndpoints = { stackUid: '', joinTokens: {}, credentials: {} } as unknown as Endpoints

function fill(request: EndpointRequest, targets: PulumiTargets): EndpointRequest {
  const { accessToken, update, updateToken, preview, previewToken, created } = targets
  const path = request.path.replaceAll('$update', update).replaceAll('$preview', preview).replaceAll('$created', created)
  const isPreview = path.includes(preview)
  const tokens: Record<string, string> = {
    $run: `token ${accessToken}`,
    $lease: `update-token ${isPreview ? previewToken : updateToken}`,
    $look: `update-token ${isPreview ? updateToken : previewToken}`,
  }
  return { ...request, path, credential: tokens[request.credential] ?? request.credential }
}

function checkResponse({ status, headers, body }: FuzzResponse, { accessToken, updateToken, previewToken }: PulumiTargets): void {
  ok(status < 500, `status ${status}: ${body.slice(0, 1_000)}`)
  if (status < 400 || body === '') return
  if (headers.get('content-type') === 'application/json') {
    const { code, message } = JSON.parse(body) as Record<string, unknown>
    ok(
      code === status && typeof message === 'string' && message !== '' && message.length < 1_000,
      `undocumented error: ${body.slice(0, 1_000)}`,
    )
  }
  for (const secret of [accessToken, updateToken, previewToken]) ok(!body.includes(secret), `the error repeats a token: ${body}`)
}

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
