import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { respondJson, respondStatus, startScriptedServer } from '../../../test/support/scripted-server.ts'
import { configMapResource, createClient, type RequestOptions, WrappedClient } from '../client/index.ts'
import { WriteThroughClient } from './write-through-client.ts'

const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'a', uid: 'u', resourceVersion: '7' } }

async function withClient(
  run: (context: {
    maps: ReturnType<typeof mapsOf>
    methods: () => string[]
    setMayWrite(mayWrite: boolean): void
    limit(responses: number): void
  }) => Promise<void>,
) {
  let mayWrite = true
  let limited = 0
  const server = await startScriptedServer((_request, response) => {
    if (limited-- > 0) {
      mayWrite = limited > 0
      respondStatus(response, 429, 'TooManyRequests', { 'retry-after': '0' })
    } else respondJson(response, configMap)
  })
  const client = await createClient({ cluster: { server: server.url, namespace: 'a' } })
  const guarded = new WriteThroughClient(
    client,
    () => [],
    () => {
      if (!mayWrite) throw new Error('not the owner')
      return undefined
    },
  )
  try {
    await run({
      maps: mapsOf(guarded),
      methods: () => server.requests.map(({ method }) => method),
      setMayWrite: value => {
        mayWrite = value
      },
      limit: responses => {
        limited = responses
      },
    })
  } finally {
    await client.close()
    await server.close()
  }
}

const mapsOf = (client: WriteThroughClient) => client.resource(configMapResource)
const change = { data: { x: '1' } }

test('a write whose right ends while its connection opens is not sent; reads are', async () => {
  await withClient(async ({ maps, methods, setMayWrite }) => {
    const write = maps.patch('a', change, { type: 'merge' })
    setMayWrite(false)
    await rejects(write, /not the owner/)
    await maps.get('a')
    deepEqual(methods(), ['GET'])
  })
})

test('a write that the server delays with 429 is not sent again once its right has ended', async () => {
  await withClient(async ({ maps, methods, limit }) => {
    limit(2)
    await rejects(maps.patch('a', change, { type: 'merge' }), /not the owner/)
    deepEqual(methods(), ['PATCH', 'PATCH'])
  })
})

test('the connection of a write is reset when its right ends, not when the caller gives up', async () => {
  const sent: RequestOptions[] = []
  class Recording extends WrappedClient {
    override request(options: RequestOptions) {
      sent.push(options)
      return super.request(options)
    }
  }
  const server = await startScriptedServer((_request, response) => respondJson(response, configMap))
  const client = await createClient({ cluster: { server: server.url, namespace: 'a' } })
  const right = new AbortController()
  try {
    const guarded = new WriteThroughClient(
      new Recording(client),
      () => [],
      () => right.signal,
    )
    await mapsOf(guarded).patch('a', change, { type: 'merge', signal: new AbortController().signal })
    await mapsOf(guarded).get('a')
    deepEqual(
      sent.map(({ method }) => method),
      ['PATCH', 'GET'],
    )
    equal(sent[0]?.resetSignal, right.signal)
    equal(sent[1]?.resetSignal, undefined)
  } finally {
    await client.close()
    await server.close()
  }
})
