import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type BucketBody, bucketOptions, FakeCloud } from '../fake-cloud.testing.ts'
import { type ManagedOptions, UnknownOutcomeError } from '../index.ts'
import { exitCodes, type Operation } from './operation.ts'
import { executeOperation } from './run-operation.ts'

type Options = ManagedOptions<BucketBody, unknown, { size: number }>

/** Executes an operation in this process; what it wrote on stderr and as outputs, and its exit code. */
async function execute(t: TestContext, operation: Partial<Operation>, change: Partial<Options> = {}, epoch = '3') {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-operation-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const [inputs, outputs] = [join(directory, 'variables.json'), join(directory, 'outputs.json')]
  const object = {
    apiVersion: 'cloud.example/v1',
    kind: 'Bucket',
    metadata: { name: 'a', namespace: 'default' },
    spec: { forProvider: { size: 2 } },
  }
  const all = { kind: 'create', number: 3, isRepeatable: false, generation: 1, failures: 0, ...operation }
  writeFileSync(
    inputs,
    JSON.stringify({ operation: all, object, observation: { exists: true, state: { size: 1 } }, variables: { zone: 'x' } }),
  )
  const written = t.mock.method(process.stderr, 'write', () => true)
  const options = { ...(bucketOptions(new FakeCloud()) as unknown as Options), ...change }
  const code = await executeOperation(options, { OARLOCK_VARIABLES: inputs, OARLOCK_OUTPUTS: outputs, OARLOCK_EPOCH: epoch })
  const stderr = written.mock.calls.map(({ arguments: values }) => String((values as unknown[])[0])).join('')
  written.mock.restore()
  return { code, stderr, outputs: code === 0 ? (JSON.parse(readFileSync(outputs, 'utf8')) as object) : undefined }
}

test('a creation writes what the function returned, with connection details as a secret output', async t => {
  const create: Options['create'] = async (_, { variables, externalName }) => {
    deepEqual([variables, externalName], [{ zone: 'x' }, undefined])
    return { externalName: 'i-1', connectionDetails: { password: 'p' }, details: { zone: 'x' }, atProvider: { version: 2 } }
  }
  const { code, outputs } = await execute(t, {}, { create })
  equal(code, 0)
  const password = Buffer.from('p').toString('base64')
  deepEqual(outputs, {
    externalName: 'i-1',
    details: { zone: 'x' },
    atProvider: { version: 2 },
    connectionDetails: { value: { password }, sensitive: true },
  })
})

test('an update gets the observation, and its state', async t => {
  let size: number | undefined
  const update: Options['update'] = async (_, __, { state }) => {
    size = state?.size
  }
  deepEqual((await execute(t, { kind: 'update', isRepeatable: true }, { update }, '9')).outputs, {})
  equal(size, 1)
})

test('a Run that follows another one does not repeat a creation (guarantee 4)', async t => {
  const { code, stderr } = await execute(t, {}, {}, '4')
  equal(code, exitCodes.refused)
  match(stderr, /create is not repeated: an earlier Run may have done it/)
})

test('an error before or of the function had no effect, unless it says otherwise', async t => {
  const fail = (error: Error) => async () => {
    throw error
  }
  equal((await execute(t, {}, { connect: fail(new UnknownOutcomeError('not reached')) })).code, exitCodes.failed)
  const failed = await execute(t, {}, { create: fail(new Error('first line\nthe quota is exhausted')) })
  deepEqual([failed.code, failed.stderr], [exitCodes.failed, 'first line the quota is exhausted\n'])
  const unknown = await execute(t, {}, { create: fail(new UnknownOutcomeError('the answer was lost')) })
  deepEqual([unknown.code, unknown.stderr], [exitCodes.unknown, 'the answer was lost; it is not known whether it had an effect\n'])
})

test('SIGTERM aborts the signal, and the result is not known', async t => {
  const create: Options['create'] = async (_, { signal }) => {
    process.emit('SIGTERM')
    signal.throwIfAborted()
  }
  const before = process.listenerCount('SIGTERM')
  equal((await execute(t, {}, { create })).code, exitCodes.unknown)
  equal(process.listenerCount('SIGTERM'), before)
})

test('what cannot be written after the function has returned leaves the result unknown', async t => {
  const create: Options['create'] = async () => ({ externalName: 1n as never })
  equal((await execute(t, {}, { create })).code, exitCodes.unknown)
})

test('there is no API server, and outside of a worker there is no operation', async t => {
  const create: Options['create'] = async (_, { client }) => {
    await client.discover('v1', 'Secret')
  }
  match(
    (await execute(t, {}, { create })).stderr,
    /client.discover is not available in an operation that a worker executes: pass what it needs by dispatch.variables/,
  )
  await rejects(executeOperation(bucketOptions(new FakeCloud()), {}), /runOperation needs OARLOCK_VARIABLES and OARLOCK_OUTPUTS/)
})
