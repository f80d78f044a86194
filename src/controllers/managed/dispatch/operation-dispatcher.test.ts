import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources, runResource, type Stack, stackResource } from '../../../api/index.ts'
import { silentLog } from '../../../kubernetes/controller/index.ts'
import { isReason, type KubeObject } from '../../../kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../../../kubernetes/testing/index.ts'
import { type BucketBody, bucketOptions, bucketResource, FakeCloud } from '../fake-cloud.testing.ts'
import type { ManagedOptions } from '../managed-options.ts'
import { operationOf } from './operation.ts'
import { OperationDispatcher } from './operation-dispatcher.ts'

const namespace = 'default'

/** One of several replicas. */
const replica = () =>
  new OperationDispatcher<BucketBody>(bucketOptions(new FakeCloud()) as unknown as ManagedOptions<BucketBody, never, never>, {
    operations: ['update'],
    program: ['true'],
  })

const requestFor = (api: TestServer, object: KubeObject<BucketBody>) => {
  const { signal } = new AbortController()
  return { object, externalName: 'a', signal, fence: undefined, client: api.client, log: silentLog }
}

const stackOf = async ({ client }: TestServer): Promise<Stack> => await client.resource(stackResource).get('bucket-a', { namespace })

const isLostRace = (result: PromiseSettledResult<unknown>) =>
  result.status === 'rejected' && isReason(result.reason, 'Conflict', 'AlreadyExists')

test('of replicas that start an operation at the same time one does (guarantee 4)', async () => {
  await using api = await startTestServer({ kinds: [...oarlockResources, bucketResource] })
  const object = await api.client.resource(bucketResource).create({ metadata: { name: 'a', namespace }, spec: { forProvider: {} } })
  const request = requestFor(api, object)
  const replicas = [replica(), replica(), replica()]
  const startAll = () => Promise.allSettled(replicas.map(each => each.start('update', request, { exists: true }, 0)))

  const first = await startAll()
  ok(first.every(result => result.status === 'fulfilled' || isLostRace(result)))
  const { metadata, spec } = await stackOf(api)
  deepEqual([metadata.generation, operationOf({ spec })?.number], [1, 1])
  deepEqual([spec.deletion, spec.drift, spec.command?.apply], ['Orphan', 'Off', ['true']])

  // Its Run has ended, and the result was acted on.
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'Applied', message: '', lastTransitionTime: '2026-11-27T06:00:00Z' } as const,
  ]
  const status = { observedGeneration: 1, lastRunNumber: 1, conditions }
  await api.client.resource(stackResource).patchStatus('bucket-a', { status }, { namespace })
  const [one] = replicas as [OperationDispatcher<BucketBody>]
  const { operation } = await one.read(request)
  ok(operation)
  equal(operation.outcome.kind, 'succeeded')
  await one.finish(operation, request)

  const second = await startAll()
  ok(second.every(result => result.status === 'fulfilled' || isLostRace(result)))
  ok(second.some(({ status }) => status === 'fulfilled'))
  const after = await stackOf(api)
  deepEqual([after.metadata.generation, operationOf(after)?.number], [2, 2])
  equal((await api.client.resource(runResource).listAll({ namespace })).items.length, 0, 'Runs are created by the controller of Stacks')
})

test('a Stack of someone else is not used', async () => {
  await using api = await startTestServer({ kinds: [...oarlockResources, bucketResource] })
  const object = await api.client.resource(bucketResource).create({ metadata: { name: 'a', namespace }, spec: { forProvider: {} } })
  const source = { inline: { files: { a: '' } } }
  await api.client
    .resource(stackResource)
    .create({ metadata: { name: 'bucket-a', namespace }, spec: { engine: 'command', source, command: { apply: ['true'] } } })
  await rejects(replica().start('update', requestFor(api, object), undefined, 0), /Stack default\/bucket-a exists, and has no owner/)
  equal((await stackOf(api)).metadata.generation, 1)
})
