import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../kubernetes/util/index.ts'
import { mergeLists, withMetadata } from './merge-lists.ts'
import { readPageToken, writePageToken } from './page-token.ts'

const list = (items: readonly unknown[], metadata: object = { resourceVersion: '7' }) =>
  JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, items })

/** In random pieces. */
async function* pieces(text: string, random: () => number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + Math.floor(random() * 40)
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function merge(bodies: readonly string[], seed = 1): Promise<string> {
  const random = seededRandom(seed)
  const chunks: Buffer[] = []
  for await (const chunk of mergeLists(bodies.map(body => pieces(body, random)))) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

test('the items of all lists follow each other, for any pieces in which they arrive', async () => {
  const items = ['ä', ']}', '"items":[', { nested: [{}] }]
  for (let seed = 1; seed <= 200; seed++) {
    deepEqual(JSON.parse(await merge([list([]), list(items), list([]), list([1, 2]), list([])], seed)), JSON.parse(list([...items, 1, 2])))
  }
  equal(await merge([list([]), list([])]), list([]))
  const table = (rows: readonly unknown[]) => JSON.stringify({ kind: 'Table', metadata: {}, columnDefinitions: [{ name: 'a' }], rows })
  const row = { cells: [1], object: { items: [1] } }
  deepEqual(JSON.parse(await merge([table([row]), table([row])])), JSON.parse(table([row, row])))
})

test('a list that ends early, or is something else, is an error and no shorter list', async () => {
  await rejects(merge([list([1]), list([1, 2]).slice(0, -1)]), /it is incomplete/)
  await rejects(merge([list([1]), '']), /answered a list with something else: ""/)
  await rejects(merge(['{"kind":"Status"}']), /answered a list with something else: "\{\\"kind\\":\\"Status\\"\}"/)
})

test('metadata are changed in the head', () => {
  const head = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","remainingItemCount":3,"continue":"x"},"items":['
  equal(
    withMetadata(head, ({ resourceVersion }) => ({ resourceVersion, continue: 'y' })),
    '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"y"},"items":[',
  )
})

test('a page token is read by gateways with the same key, for the same list only', () => {
  const key = Buffer.alloc(32, 1)
  const page = { version: 7, partition: 't1', inner: 'abc', parts: 'p', scope: '/api/v1/pods?labelSelector=a' }
  const token = writePageToken(page, key)
  deepEqual(readPageToken(token, page.scope, key), page)
  for (const [text, scope, with_] of [
    [token, '/api/v1/secrets', key],
    [token, page.scope, Buffer.alloc(32, 2)],
    ['x', page.scope, key],
    [Buffer.from('{"t":"{}","s":"AA"}').toString('base64url'), page.scope, key],
  ] as const)
    throws(() => readPageToken(text, scope, with_), /invalid continue token: continue key is not valid: it (is not a token|belongs to)/)
})
