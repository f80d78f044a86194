import { deepEqual, equal, ok } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { answerStatus } from '../../../test/support/scripted-server.ts'
import { TinyApi } from '../../../test/support/tiny-api.ts'
import { configMapResource, createClient, type ListWatchOptions, listWatch } from './index.ts'

const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`

/** Runs a list+watch and writes down what it tells, as `replace a,b` and `ADDED c`. */
async function follow(
  run: (context: { api: TinyApi; told: string[]; errors: string[]; asked: () => string[] }) => Promise<void>,
  options: Partial<ListWatchOptions<object>> = {},
) {
  const api = await TinyApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const told: string[] = []
  const errors: string[] = []
  api.put(path('x'))
  const running = listWatch(client, configMapResource, {
    backoff: { minMs: 2, maxMs: 10 },
    random: () => 0.5,
    ...options,
    signal: stop.signal,
    onReplace: items => void told.push(`replace ${items.map(({ metadata }) => metadata.name).join()}`),
    onEvent: ({ type, object }) => void told.push(`${type} ${object.metadata.name ?? ''}`.trim()),
    onError: error => void errors.push(`${error}`),
  })
  const asked = () =>
    api.server.requests
      .filter(({ path }) => path !== '/version')
      .map(({ query }) => (query.has('watch') ? `watch ${query.get('resourceVersion')}` : 'list'))
  try {
    await eventually(() => api.watchers === 1, 'the first watch')
    await run({ api, told, errors, asked })
    stop.abort()
    await running
  } finally {
    stop.abort()
    await client.close()
    await api.close()
  }
}

test('a cut in the middle of a line resumes from the last event, without a new list', async () => {
  await follow(async ({ api, told, errors, asked }) => {
    api.put(path('y'))
    await eventually(() => told.length === 2, 'y')
    api.sendRaw('{"type":"ADDED","obj')
    api.cut()
    api.put(path('z'))
    await eventually(() => told.includes('ADDED z'), 'z')
    deepEqual(told, ['replace x', 'ADDED y', 'ADDED z'])
    deepEqual(asked(), ['list', 'watch 101', 'watch 102'])
    ok(errors[0]?.includes('ConnectionError'), errors.join())
  })
})

test('a watch that the server ends is renewed from the last version, and bookmarks move that version', async () => {
  await follow(async ({ api, told, errors, asked }) => {
    api.put('/api/v1/namespaces/a/secrets/s')
    api.bookmark()
    await eventually(() => told.length === 2, 'the bookmark')
    api.endWatches()
    await eventually(() => api.watchers === 1, 'the next watch')
    deepEqual(asked(), ['list', 'watch 101', 'watch 102'])
    deepEqual(told, ['replace x', 'BOOKMARK'])
    deepEqual(errors, [])
  })
})

test('410 inside the stream leads to a new list', async () => {
  await follow(async ({ api, told, errors }) => {
    api.cut()
    api.put(path('y'))
    api.remove(path('x'))
    api.compact()
    await eventually(() => told.length === 2, 'the second list')
    deepEqual(told, ['replace x', 'replace y'])
    ok(errors.some(text => text.includes('too old resource version')))
  })
})

test('410 as HTTP code leads to a new list', async () => {
  await follow(async ({ api, told }) => {
    let refusals = 1
    api.intercept = ({ query }, response) => {
      if (!query.has('watch') || refusals-- <= 0) return false
      answerStatus(response, 410, 'Gone')
      return true
    }
    api.cut()
    await eventually(() => told.length === 2 && api.watchers === 1, 'the second list')
    deepEqual(told, ['replace x', 'replace x'])
  })
})

test('garbage, HTML, 403 and 500 are survived, told, and followed by what was missed', async () => {
  await follow(
    async ({ api, told, errors }) => {
      const bad: ((response: ServerResponse) => void)[] = [
        response => response.writeHead(200).end('{"type":"ADDED"}\n'),
        response => response.writeHead(502, { 'content-type': 'text/html' }).end('<html>bad gateway</html>'),
        response => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>please\nlog in</html>\n'),
        response => answerStatus(response, 403, 'Forbidden'),
        response => answerStatus(response, 500, 'InternalError'),
        response => response.writeHead(200).end('null\n'),
        response => response.writeHead(200).end('{"items":7}'),
      ]
      api.intercept = (_request, response) => {
        const answer = bad.shift()
        answer?.(response)
        return answer !== undefined
      }
      api.sendRaw('this is not JSON\n')
      api.put(path('y'))
      await eventually(() => bad.length === 0 && api.watchers === 1, 'all faults are over')
      equal(told.at(-1) === 'ADDED y' || told.at(-1) === 'replace x,y', true, told.join('; '))
      for (const part of ['not JSON', 'not an event', 'bad gateway', 'log in', 'Forbidden', 'InternalError', 'expected a ConfigMap'])
        ok(
          errors.some(text => text.includes(part)),
          `${part} in ${errors.join('\n')}`,
        )
    },
    { streamLists: false },
  )
})

test('a watch that falls silent is given up after its idle bound', async () => {
  await follow(
    async ({ api, told, errors }) => {
      // The server forgets the watcher but leaves the connection open, as a lost NAT entry does.
      api.forgetWatchers()
      api.put(path('y'))
      await eventually(() => told.includes('ADDED y'), 'y after the silence')
      ok(errors[0]?.includes('UND_ERR_BODY_TIMEOUT'), errors.join())
    },
    { idleTimeoutMs: 100 },
  )
})

test('a callback that throws is told, does not end the watch, and sees the event again', async () => {
  const api = await TinyApi.start()
  const client = await createClient({ cluster: { server: api.server.url } })
  const stop = new AbortController()
  const told: string[] = []
  const running = listWatch(client, configMapResource, {
    backoff: { minMs: 2, maxMs: 10 },
    signal: stop.signal,
    onReplace: () => undefined,
    onEvent: ({ object }) => {
      if (told.push(object.metadata.name) === 1) throw new Error('not now')
    },
    onError: error => {
      told.push(String(error))
      throw new Error('not even this')
    },
  })
  await eventually(() => api.watchers === 1, 'the watch')
  api.put(path('y'))
  await eventually(() => told.length === 3, 'the event comes again')
  deepEqual(told, ['y', 'Error: not now', 'y'])
  stop.abort()
  await running
  await client.close()
  await api.close()
})

test('the end of its client ends it too: nothing may keep a process alive with a client that cannot ask', async () => {
  const api = await TinyApi.start()
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

test('a line of 4 MB comes through whole', async () => {
  await follow(async ({ api, told, errors }) => {
    api.put(path('big'), { data: { text: 'é'.repeat(2_000_000) } })
    await eventually(() => told.includes('ADDED big'), 'big')
    deepEqual(errors, [])
  })
})

for (const { name, answer } of [
  { name: 'refuses it', answer: (response: ServerResponse) => answerStatus(response, 422, 'Invalid') },
  { name: 'ends it before its end', answer: (response: ServerResponse) => response.writeHead(200).end(added('early')) },
  { name: 'never says where the list ends', answer: (response: ServerResponse) => response.writeHead(200).write(added('early')) },
  { name: 'sends HTML', answer: (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n') },
]) {
  test(`a list over the watch, from a server that ${name}, is followed by one in pages`, async () => {
    const api = await TinyApi.start()
    api.put(path('x'))
    const client = await createClient({ cluster: { server: api.server.url } })
    const stop = new AbortController()
    const told: string[] = []
    const asked: string[] = []
    api.intercept = (request, response) => {
      if (request.path === '/version') {
        response.end('{"major":"1","minor":"36+"}')
        return true
      }
      const isStream = request.query.has('sendInitialEvents')
      asked.push(isStream ? 'stream' : request.query.has('watch') ? 'watch' : 'list')
      if (isStream) answer(response)
      return isStream
    }
    const running = listWatch(client, configMapResource, {
      backoff: { minMs: 2, maxMs: 10 },
      idleTimeoutMs: 100,
      signal: stop.signal,
      onReplace: items => void told.push(`replace ${items.map(({ metadata }) => metadata.name).join()}`),
      onEvent: ({ object }) => void told.push(object.metadata.name),
    })
    await eventually(() => told.length > 0 && asked.includes('watch'), 'the list')
    stop.abort()
    await running
    deepEqual([told, asked.slice(0, 3)], [['replace x'], ['stream', 'list', 'watch']])
    await client.close()
    await api.close()
  })
}
const added = (name: string) => `${JSON.stringify({ type: 'ADDED', object: { metadata: { name, resourceVersion: '1' } } })}\n`
