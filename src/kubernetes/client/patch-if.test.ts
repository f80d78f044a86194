import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { respondJson, respondStatus, startScriptedServer } from '../../../test/support/scripted-server.ts'
import { configMapResource, createClient, patchIf } from './index.ts'

/** A ConfigMap that changes after each of the first `changes` reads, and then has `data.state` 'late'. */
async function patchChanging(changes: number, accepts: (state: string) => boolean) {
  let version = 1
  const sent: unknown[] = []
  const object = () => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: `${version}` },
    data: { state: version > changes ? 'late' : 'early' },
  })
  const server = await startScriptedServer((request, response) => {
    if (request.method === 'GET') {
      respondJson(response, object())
      if (version <= changes) version++
      return
    }
    const { metadata, data } = JSON.parse(request.body) as ReturnType<typeof object>
    sent.push({ at: metadata.resourceVersion, ...data })
    if (metadata.resourceVersion !== `${version}`) respondStatus(response, 409, 'Conflict')
    else respondJson(response, object())
  })
  const client = await createClient({ cluster: { server: server.url } })
  try {
    const configMaps = client.resource(configMapResource)
    const patched = await patchIf(
      configMaps,
      { name: 'a' },
      ({ data }) => accepts(data?.state ?? ''),
      ({ data }) => ({ data: { from: data?.state } }),
    )
    return { sent, version: patched?.metadata.resourceVersion }
  } finally {
    await client.close()
    await server.close()
  }
}

test('an object that changes in between is read again, and the version that was read is patched', async () => {
  const { sent, version } = await patchChanging(2, () => true)
  deepEqual(sent, [
    { at: '1', from: 'early' },
    { at: '2', from: 'early' },
    { at: '3', from: 'late' },
  ])
  equal(version, '3')
})

test('nothing is patched when the condition no longer holds', async () => {
  deepEqual(await patchChanging(1, state => state === 'early'), { sent: [{ at: '1', from: 'early' }], version: undefined })
  deepEqual(await patchChanging(0, state => state === 'early'), { sent: [], version: undefined })
})

test('an object that changes with each read is a conflict after five attempts', async () => {
  await rejects(
    patchChanging(9, () => true),
    { reason: 'Conflict' },
  )
})
