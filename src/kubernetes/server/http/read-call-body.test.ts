import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { HttpRequest } from './handler-types.ts'
import { readCallBody } from './read-call-body.ts'

const requestOf = (text: string, contentType: string) =>
  ({ method: 'PATCH', headers: { 'content-type': contentType }, body: Buffer.from(text) }) as unknown as HttpRequest

test('long bodies that arrive together are processed in different iterations of the event loop', async () => {
  const long = JSON.stringify({ a: 'x'.repeat(70_000) })
  const read: string[] = []
  const types = ['application/json', 'application/apply-patch+yaml', 'application/json']
  const bodies = types.map(async type => {
    const { body, json } = await readCallBody(requestOf(long, type), 'patch', 'ann')
    read.push(type)
    equal(body, long)
    deepEqual(json, type.endsWith('yaml') ? { value: JSON.parse(long), duplicates: [] } : undefined)
  })
  let most = 0
  for (let seen = 0; seen < types.length; seen = read.length) {
    await nextIteration()
    most = Math.max(most, read.length - seen)
  }
  await Promise.all(bodies)
  equal(most, 1)
})
