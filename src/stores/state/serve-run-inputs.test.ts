import { deepStrictEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { RunInputsError, type RunInputsSource, type StackOutputsData, StaleEpochError } from './index.ts'
import { clientOf, type StateServer, withStateServer } from './state-server.testing.ts'

const inputs = { secrets: [{ name: 'db', keys: ['dsn'], data: { dsn: 'eA==' } }], configMaps: [], outputs: [] }

/** Keeps the outputs of one Stack; the Stack `net` has none, and reading fails with the errors in `failures` first. */
function sourceWith(failures: Error[] = []) {
  const calls: string[] = []
  let stored: StackOutputsData | undefined
  const source: RunInputsSource = {
    read: async ({ namespace, stack, stackUid, runName }) => {
      calls.push(`read ${namespace}/${stack} ${stackUid} ${runName}`)
      const failure = failures.shift()
      if (failure) throw failure
      return inputs
    },
    readOutputs: async (_, stack) => (stack === 'own' ? stored : undefined),
    writeOutputs: async (_, outputs) => {
      stored = outputs
    },
    deleteOutputs: async () => {
      stored = undefined
    },
  }
  return { source, calls }
}

const request = async (server: StateServer, method: string, path: string, body?: string) => {
  const headers = { authorization: `Basic ${Buffer.from('w:worker').toString('base64')}`, 'oarlock-epoch': '1' }
  const response = await fetch(`${server.url}/state/apps/net/run/run-1/${path}`, { method, headers, body })
  const { error } = (await response.json()) as { error?: { code: string } }
  return [response.status, error?.code]
}

test('serves the inputs of a Run and the outputs of its Stack', () => {
  const { source, calls } = sourceWith()
  return withStateServer(
    async server => {
      const client = clientOf(server, 1)
      deepStrictEqual(await client.getInputs(), inputs)
      deepStrictEqual(calls, ['read apps/net uid run-1'])
      equal(await client.getOutputs('own'), undefined)
      const outputs = { data: { url: 'eA==' }, sensitive: ['url'], pulumiStack: 'shop/dev' }
      await client.putOutputs(outputs)
      deepStrictEqual(await client.getOutputs('own'), outputs)
      await client.deleteOutputs()
      equal(await client.getOutputs('own'), undefined)
      await client.close()
    },
    { handler: { inputs: source } },
  )
})

test('a Run that a newer one has fenced off gets no inputs (invariant 3)', () => {
  const { source, calls } = sourceWith()
  return withStateServer(
    async server => {
      const [old, next] = [clientOf(server, 1), clientOf(server, 2)]
      await next.lock()
      for (const work of [() => old.getInputs(), () => old.getOutputs('own'), () => old.putOutputs({ data: {}, sensitive: [] })])
        await rejects(work(), StaleEpochError)
      deepStrictEqual(calls, [])
      deepStrictEqual(await next.getInputs(), inputs)
      await Promise.all([old.close(), next.close()])
    },
    { handler: { inputs: source } },
  )
})

test('a worker retries while the API server does not answer, and no other error', () => {
  const unavailable = () => new RunInputsError('Unavailable', 'the API server did not answer')
  const { source, calls } = sourceWith([
    unavailable(),
    unavailable(),
    new RunInputsError('InputsNotAllowed', 'allow it with: kubectl'),
    new RunInputsError('InputsTooLarge', 'too large'),
  ])
  return withStateServer(
    async server => {
      const client = clientOf(server, 1)
      await rejects(client.getInputs(), { code: 'InputsNotAllowed', status: 403, message: 'allow it with: kubectl' })
      equal(calls.length, 3)
      await rejects(client.getInputs(), { code: 'InputsTooLarge', status: 413, message: 'too large' })
      await client.close()
    },
    { handler: { inputs: source } },
  )
})

test('rejects malformed requests, other methods, and outputs above the limit', () =>
  withStateServer(
    async server => {
      for (const [method, path, body, expected] of [
        ['POST', 'inputs', '{}', [405, 'MethodNotAllowed']],
        ['GET', 'outputs', undefined, [405, 'MethodNotAllowed']],
        ['PUT', 'outputs/own', '{}', [405, 'MethodNotAllowed']],
        ['GET', 'outputs/Own', undefined, [400, 'BadRequest']],
        ['GET', 'outputs/own/more', undefined, [404, 'NotFound']],
        ['GET', 'inputs/more', undefined, [404, 'NotFound']],
        ['PUT', 'outputs', 'null', [400, 'BadRequest']],
        ['PUT', 'outputs', '{"data":{"a":1},"sensitive":[]}', [400, 'BadRequest']],
        ['PUT', 'outputs', '{"data":{}}', [400, 'BadRequest']],
        ['PUT', 'outputs', `{"data":{"a":"${'x'.repeat(2 * 1024 * 1024)}"},"sensitive":[]}`, [413, 'TooLarge']],
      ] as const)
        deepStrictEqual(await request(server, method, path, body), expected, `${method} ${path}`)
    },
    { handler: { inputs: sourceWith().source } },
  ))

test('stores without a source of inputs answer 404', () =>
  withStateServer(async server => deepStrictEqual(await request(server, 'GET', 'inputs'), [404, 'NotFound'])))
