import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { respondStatus } from '../../../test/support/scripted-server.ts'
import { configMapResource, createClient, type ListWatchOptions, listWatch } from './index.ts'

const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`

/** Runs a list+watch and records its callbacks, as `replace a,b` and `ADDED c`. */
async function follow(
  run: (context: { api: InMemoryApi; recorded: string[]; errors: string[]; requested: () => string[] }) => Promise<void>,
  options: Partial<ListWatchOptions<object>> = {},
) {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const recorded: string[] = []
  const errors: string[] = []
  api.put(path('x'))
  const running = listWatch(client, configMapResource, {
    backoff: { minMs: 2, maxMs: 10 },
    random: () => 0.5,
    ...options,
    signal: stop.signal,
    onReplace: items => void recorded.push(`replace ${items.map(({ metadata }) => metadata.name).join()}`),
    onEvent: ({ type, object }) => void recorded.push(`${type} ${object.metadata.name ?? ''}`.trim()),
    onError: error => void errors.push(`${error}`),
  })
  const requested = () =>
    api.server.requests
      .filter(({ path }) => path !== '/version')
      .map(({ query }) => (query.has('watch') ? `watch ${query.get('resourceVersion')}` : 'list'))
  try {
    await eventually(() => api.watchers === 1, 'the first watch')
    await run({ api, recorded, errors, requested })
    stop.abort()
    await running
  } finally {
    stop.abort()
    await client.close()
    await api.close()
  }
}

test('a watch that breaks within a line resumes from the last event, without a new list', async () => {
  await follow(async ({ api, recorded, errors, requested }) => {
    api.put(path('y'))
    await eventually(() => recorded.length === 2, 'y')
    api.sendRaw('{"type":"ADDED","obj')
    api.breakWatches()
    api.put(path('z'))
    await eventually(() => recorded.includes('ADDED z'), 'z')
    deepEqual(recorded, ['replace x', 'ADDED y', 'ADDED z'])
    deepEqual(requested(), ['list', 'watch 101', 'watch 102'])
    ok(errors[0]?.includes('ConnectionError'), errors.join())
  })
})

test('a watch that the server ends is renewed from the last version, which bookmarks advance', async () => {
  await follow(async ({ api, recorded, errors, requested }) => {
    api.put('/api/v1/namespaces/a/secrets/s')
    api.bookmark()
    await eventually(() => recorded.length === 2, 'the bookmark')
    api.endWatches()
    await eventually(() => api.watchers === 1, 'the next watch')
    deepEqual(requested(), ['list', 'watch 101', 'watch 102'])
    deepEqual(recorded, ['replace x', 'BOOKMARK'])
    deepEqual(errors, [])
  })
})

test('a 410 event within the stream leads to a new list', async () => {
  await follow(async ({ api, recorded, errors }) => {
    api.breakWatches()
    api.put(path('y'))
    api.remove(path('x'))
    api.compact()
    await eventually(() => recorded.length === 2, 'the second list')
    deepEqual(recorded, ['replace x', 'replace y'])
    ok(errors.some(text => text.includes('too old resource version')))
  })
})

test('a 410 response leads to a new list', async () => {
  await follow(async ({ api, recorded }) => {
    let rejections = 1
    api.intercept = ({ query }, response) => {
      if (!query.has('watch') || rejections-- <= 0) return false
      respondStatus(response, 410, 'Gone')
      return true
    }
    api.breakWatches()
    await eventually(() => recorded.length === 2 && api.watchers === 1, 'the second list')
    deepEqual(recorded, ['replace x', 'replace x'])
  })
})

test('a server that was down and has lost its event history is listed without another delay of the backoff', async () => {
  const sleeps: number[] = []
  const clock = { nowMs: () => performance.now(), sleep: async (ms: number) => void sleeps.push(ms) }
  await follow(
    async ({ api, recorded }) => {
      api.intercept = (_request, response) => {
        if (sleeps.length >= 7) return false
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"type":')
        setImmediate(() => response.destroy())
        return true
      }
      api.breakWatches()
      api.put(path('y'))
      api.compact()
      await eventually(() => recorded.length === 2 && api.watchers === 1, 'the list after the outage')
      deepEqual(recorded, ['replace x', 'replace x,y'])
      deepEqual(sleeps, [1_200, 2_400, 4_800, 9_600, 19_200, 22_500, 22_500, 50])
    },
    { clock, backoff: { minMs: 800, maxMs: 30_000 } },
  )
})

test('recovers from malformed data, HTML, 403 and 500, reports each, and delivers what was missed', async () => {
  await follow(
    async ({ api, recorded, errors }) => {
      const bad: ((response: ServerResponse) => void)[] = [
        response => response.writeHead(200).end('{"type":"ADDED"}\n'),
        response => response.writeHead(502, { 'content-type': 'text/html' }).end('<html>bad gateway</html>'),
        response => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>please\nlog in</html>\n'),
        response => respondStatus(response, 403, 'Forbidden'),
        response => respondStatus(response, 500, 'InternalError'),
        response => response.writeHead(200).end('null\n'),
        response => response.writeHead(200).end('{"items":7}'),
      ]
      api.intercept = (_request, response) => {
        const respond = bad.shift()
        respond?.(response)
        return respond !== undefined
      }
      api.sendRaw('this is not JSON\n')
      api.put(path('y'))
      await eventually(() => bad.length === 0 && api.watchers === 1, 'a watch after all faults')
      equal(recorded.at(-1) === 'ADDED y' || recorded.at(-1) === 'replace x,y', true, recorded.join('; '))
      for (const part of ['not JSON', 'not an event', 'bad gateway', 'log in', 'Forbidden', 'InternalError', 'expected a ConfigMap'])
        ok(
          errors.some(text => text.includes(part)),
          `${part} in ${errors.join('\n')}`,
        )
    },
    { streamLists: false },
  )
})

test('a silent watch is closed after its idle timeout', async () => {
  await follow(
    async ({ api, recorded, errors }) => {
      // The server forgets the watcher but leaves the connection open, as a lost NAT entry does.
      api.forgetWatchers()
      api.put(path('y'))
      await eventually(() => recorded.includes('ADDED y'), 'y after the silence')
      ok(errors[0]?.includes('ERR_RESPONSE_BODY_TIMEOUT'), errors.join())
    },
    { idleTimeoutMs: 100 },
  )
})

test('an error of a callback is reported, does not end the watch, and the event is delivered again', async () => {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const recorded: string[] = []
  const running = listWatch(client, configMapResource, {
    backoff: { minMs: 2, maxMs: 10 },
    signal: stop.signal,
    onReplace: () => undefined,
    onEvent: ({ object }) => {
      if (recorded.push(object.metadata.name) === 1) throw new Error('not now')
    },
    onError: error => {
      recorded.push(String(error))
      throw new Error('not even this')
    },
  })
  await eventually(() => api.watchers === 1, 'the watch')
  api.put(path('y'))
  await eventually(() => recorded.length === 3, 'the event again')
  deepEqual(recorded, ['y', 'Error: not now', 'y'])
  stop.abort()
  await running
  await client.close()
  await api.close()
})

test('ends when its client is closed: a client that cannot send must not keep the process alive', async () => {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const running = listWatch(client, configMapResource, {
    backoff: { minMs: 2, maxMs: 10 },
    signal: new AbortController().signal,
    onReplace: () => undefined,
    onEvent: () => undefined,
  })
  await eventually(() => api.watchers === 1, 'the watch')
  await client.close()
  await running
  await api.close()
})

test('delivers a line of 4 MB', async () => {
  await follow(async ({ api, recorded, errors }) => {
    api.put(path('big'), { data: { text: 'é'.repeat(2_000_000) } })
    await eventually(() => recorded.includes('ADDED big'), 'big')
    deepEqual(errors, [])
  })
})

for (const { name, respond } of [
  { name: 'rejects it', respond: (response: ServerResponse) => respondStatus(response, 422, 'Invalid') },
  { name: 'closes it early', respond: (response: ServerResponse) => response.writeHead(200).end(added('early')) },
  { name: 'never ends it', respond: (response: ServerResponse) => response.writeHead(200).write(added('early')) },
  { name: 'sends HTML', respond: (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n') },
]) {
  test(`falls back to pages when the server of a streaming list ${name}`, async () => {
    const api = await InMemoryApi.start()
    api.put(path('x'))
    const client = await createClient({ cluster: { server: api.server.url } })
    const stop = new AbortController()
    const recorded: string[] = []
    const requested: string[] = []
    api.intercept = (request, response) => {
      if (request.path === '/version') {
        response.end('{"major":"1","minor":"36+"}')
        return true
      }
      const isStream = request.query.has('sendInitialEvents')
      requested.push(isStream ? 'stream' : request.query.has('watch') ? 'watch' : 'list')
      if (isStream) respond(response)
      return isStream
    }
    const running = listWatch(client, configMapResource, {
      backoff: { minMs: 2, maxMs: 10 },
      idleTimeoutMs: 100,
      signal: stop.signal,
      onReplace: items => void recorded.push(`replace ${items.map(({ metadata }) => metadata.name).join()}`),
      onEvent: ({ object }) => void recorded.push(object.metadata.name),
    })
    await eventually(() => recorded.length > 0 && requested.includes('watch'), 'the list')
    stop.abort()
    await running
    deepEqual([recorded, requested.slice(0, 3)], [['replace x'], ['stream', 'list', 'watch']])
    await client.close()
    await api.close()
  })
}
const added = (name: string) => `${JSON.stringify({ type: 'ADDED', object: { metadata: { name, resourceVersion: '1' } } })}\n`
