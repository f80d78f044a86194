import { deepEqual, equal } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyDelta } from './apply-delta.ts'
import { PulumiBackendError } from './pulumi-backend.ts'
import { createPulumiFixture } from './pulumi-client.testing.ts'

const hash = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex')
/** As gotextdiff prints an edit. */
const edit = (start: number, end: number, NewText: string) => ({
  Span: { uri: '', start: { line: 1, column: 0, offset: start }, end: { line: 1, column: 0, offset: end } },
  NewText,
})
const stored = (versions: readonly Uint8Array[]) => versions.map(each => Buffer.from(each).toString())

test('a checkpoint is stored as a deployment with its version and features, byte for byte', async t => {
  const { backend, start } = await createPulumiFixture(t)
  const update = await start()
  const bytes = Buffer.from('{"isInvalid":false,"version":4,"features":["views"],"deployment":{"n": 12345678901234567890}}')
  equal((await update.call('PATCH', 'checkpoint', undefined, { bytes })).status, 200)
  equal((await update.call('PATCH', 'checkpoint', { isInvalid: false, version: 3, deployment: { resources: [] } })).status, 200)
  deepEqual(stored(backend.stacks.get('apps/web/dev')!.versions), [
    '{"version":4,"features":["views"],"deployment":{"n": 12345678901234567890}}',
    '{"version":3,"deployment":{"resources":[]}}',
  ])
})

test('an invalidation leaves the stored state as it is', async t => {
  const { backend, start } = await createPulumiFixture(t)
  const update = await start()
  equal((await update.call('PATCH', 'checkpoint', { isInvalid: true, version: 3 })).status, 200)
  deepEqual(backend.stacks.get('apps/web/dev')!.versions, [])
  equal((await update.call('PATCH', 'checkpoint', { version: 3 })).status, 400)
  equal((await update.call('PATCH', 'checkpoint', { version: 3, deployment: null })).status, 400)
})

test('a delta is applied to the last verbatim checkpoint, and checked against its digest', async t => {
  const { backend, start } = await createPulumiFixture(t)
  const update = await start()
  const first = '{"version":3,"deployment":{"resources":[{"urn":"ä"}]}}'
  const second = '{"version":3,"deployment":{"resources":[{"urn":"ä"},{"urn":"b"}]}}'
  const at = Buffer.from(first).length - 3
  const delta = (sequenceNumber: number, checkpointHash: string, deploymentDelta: unknown) => ({
    ...{ version: 3, sequenceNumber, checkpointHash, deploymentDelta },
  })
  const appended = delta(2, hash(second), [edit(at, at, ',{"urn":"b"}')])
  equal((await update.call('PATCH', 'checkpointdelta', appended)).status, 409, 'a delta without a base')
  const verbatim = Buffer.from(`{"version":3,"untypedDeployment":${first},"sequenceNumber":1}`)
  equal((await update.call('PATCH', 'checkpointverbatim', undefined, { bytes: verbatim })).status, 200)
  equal((await update.call('PATCH', 'checkpointdelta', delta(2, hash('other'), [edit(at, at, ',{"urn":"b"}')]))).status, 409)
  equal((await update.call('PATCH', 'checkpointdelta', appended)).status, 200)
  // The answer was lost: the CLI repeats it, and nothing is stored again.
  equal((await update.call('PATCH', 'checkpointdelta', appended)).status, 200)
  equal(
    (await update.call('PATCH', 'checkpointverbatim', undefined, { bytes: verbatim })).status,
    409,
    'delayed, older than the stored one',
  )
  deepEqual(stored(backend.stacks.get('apps/web/dev')!.versions), [first, second])
})

test('after a failed write the next delta is refused, so that the CLI sends a whole checkpoint', async t => {
  const { backend, start } = await createPulumiFixture(t)
  const update = await start()
  const text = '{"version":3,"deployment":{}}'
  const whole = (sequenceNumber: number) => ({ version: 3, untypedDeployment: JSON.parse(text), sequenceNumber })
  await update.call('PATCH', 'checkpointverbatim', whole(1))
  backend.before = () => {
    throw new PulumiBackendError('Unavailable', 'retry')
  }
  equal((await update.call('PATCH', 'checkpointverbatim', whole(2))).status, 503)
  backend.before = () => {}
  const delta = { version: 3, sequenceNumber: 3, checkpointHash: hash(text), deploymentDelta: [] }
  equal((await update.call('PATCH', 'checkpointdelta', delta)).status, 409)
  equal((await update.call('PATCH', 'checkpointverbatim', whole(3))).status, 200)
  equal((await update.call('PATCH', 'checkpointdelta', { ...delta, sequenceNumber: 4 })).status, 200)
})

test('a refused checkpoint is kept', async t => {
  const { backend, start, handler } = await createPulumiFixture(t)
  const update = await start()
  handler.fence('the Run has lost the lock')
  const whole = { version: 3, untypedDeployment: { version: 3, deployment: {} }, sequenceNumber: 1 }
  equal((await update.call('PATCH', 'checkpointverbatim', whole)).status, 403)
  equal((await update.call('PATCH', 'checkpointdelta', { sequenceNumber: 1, checkpointHash: '', deploymentDelta: [] })).status, 403)
  deepEqual(backend.calls, ['startUpdate update 1', 'keepRefused 1 checkpoint'])
})

const random = fc.uint8Array({ maxLength: 60 })

test('property: edits between two texts result in the second one, and a changed base is detected', () => {
  const parameters = fc.array(fc.tuple(random, random, fc.string({ unit: 'binary', maxLength: 10 })), { maxLength: 8 })
  fc.assert(
    fc.property(parameters, pieces => {
      const before: Uint8Array[] = []
      const after: Uint8Array[] = []
      const edits: unknown[] = []
      let offset = 0
      for (const [kept, removed, text] of pieces) {
        before.push(kept, removed)
        after.push(kept, Buffer.from(text))
        edits.push(edit(offset + kept.length, offset + kept.length + removed.length, text))
        offset += kept.length + removed.length
      }
      const base = Buffer.concat(before)
      const expected = Buffer.concat(after)
      deepEqual(Buffer.from(applyDelta(base, edits, hash(expected), 10_000) ?? 'none'), expected)
      equal(applyDelta(Buffer.concat([base, Buffer.from('x')]), edits, hash(expected), 10_000), undefined)
    }),
  )
})

test('edits that do not fit the base, overlap, are malformed or result in too much are refused', () => {
  const base = Buffer.from('0123456789')
  const point = (offset: unknown) => ({ line: 1, column: 0, offset })
  for (const edits of [
    [edit(0, 11, '')],
    [edit(5, 4, '')],
    [edit(3, 5, 'x'), edit(4, 6, 'y')],
    [{ Span: { start: point(-1), end: point(1) }, NewText: '' }],
    [{ Span: { start: point(0.5), end: point(1) }, NewText: '' }],
    [{ Span: { start: point(0), end: point(1) } }],
    [null],
    'text',
    undefined,
  ])
    equal(applyDelta(base, edits, hash(base), 100), undefined, JSON.stringify(edits))
  equal(applyDelta(base, [edit(0, 0, 'x'.repeat(200))], hash(`${'x'.repeat(200)}0123456789`), 100), undefined)
  deepEqual(applyDelta(base, [], hash(base).toUpperCase(), 100), base)
})
