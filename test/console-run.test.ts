/** What the page of a Run reads from the console of a real all-in-one. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { runResource, stackResource } from '../src/api/index.ts'
import type { Session } from '../src/console/protocol/index.ts'
import { namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'

describe('the log of a Run on the console', { timeout: 120_000 }, () => {
  const dataDir = makeDataDir()
  let app: OarlockProcess
  let api: string
  let run: string

  before(async () => {
    app = await startOarlock(dataDir)
    api = `${app.httpUrl}/console/api/`
    await app.client.resource(namespaceResource).create({ metadata: { name: 'a' } })
    await app.client.resource(stackResource).create({
      metadata: { namespace: 'a', name: 'one' },
      spec: { engine: 'command', command: { apply: ['echo', 'größer'] }, source: { inline: { files: { a: '1' } } } },
    })
    const ended = async () => {
      const { items } = await app.client.resource(runResource).list({ namespace: 'a' })
      return items.find(({ status }) => status?.phase === 'Succeeded')?.metadata.name
    }
    run = await eventually(ended, 'the Run', 60_000)
  })
  after(async () => {
    await app?.stop()
    removeDirectory(dataDir)
  })

  async function signIn(credential: object) {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${api}session`, { method: 'POST', headers, body: JSON.stringify(credential) })
    equal(response.status, 200)
    const cookie = (response.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
    const { csrfToken } = (await response.json()) as Session
    return (path: string) => fetch(`${api}${path}`, { headers: { cookie, 'x-oarlock-csrf': csrfToken } })
  }
  async function administrator() {
    const authorization = `Bearer ${readFileSync(join(dataDir, 'console-token'), 'utf8').trim()}`
    const response = await fetch(`${api}links`, { method: 'POST', headers: { authorization } })
    return await signIn((await response.json()) as { link: string })
  }

  test('is read from any byte on, with the time of each line, and ends when it has ended', async () => {
    const get = await administrator()
    const whole = await (await get(`logs/a/${run}`)).text()
    match(whole, /^Run one-\w+-1: Apply of Stack a\/one .*\nPlanning\n(.*\n)*Applying\n(.*\n)*größer\n(.*\n)*Succeeded: /)
    const offset = Buffer.byteLength(whole.slice(0, whole.indexOf('Applying')))
    for (const follow of ['', '&follow=1']) {
      const response = await get(`logs/a/${run}?timestamps=1&offset=${offset}${follow}`)
      equal(response.headers.get('oarlock-times'), 'present')
      equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
      equal(response.headers.get('x-content-type-options'), 'nosniff')
      const lines = (await response.text()).trimEnd().split('\n')
      for (const line of lines) match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ /)
      equal(`${lines.map(line => line.slice(21)).join('\n')}\n`, whole.slice(whole.indexOf('Applying')))
    }
  })

  test('is not there for a Run that does not exist, and is hidden from users who may not read it', async () => {
    equal((await (await administrator())('logs/a/none')).status, 404)
    const path = '/api/v1/namespaces/a/serviceaccounts/default/token'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const issue = async () => (await (await app.client.request({ method: 'POST', path, body })).json()) as { status: { token: string } }
    const { token } = (await eventually(async () => await issue().catch(() => undefined), 'the ServiceAccount')).status
    const get = await signIn({ token })
    const response = await get(`logs/a/${run}`)
    equal(response.status, 403)
    deepEqual(((await response.json()) as { reason: string }).reason, 'Forbidden')
  })

  test('a session follows 16 logs at most, and another one when one of them is closed', async () => {
    await app.client.resource(stackResource).create({
      metadata: { namespace: 'a', name: 'long' },
      spec: { engine: 'command', command: { apply: ['sleep', '100'] }, source: { inline: { files: { a: '1' } } } },
    })
    const applying = async () => {
      const { items } = await app.client.resource(runResource).list({ namespace: 'a' })
      return items.find(({ spec, status }) => spec.stackRef.name === 'long' && status?.phase === 'Applying')?.metadata.name
    }
    const path = `logs/a/${await eventually(applying, 'the Run', 60_000)}?follow=1`
    const get = await administrator()
    const logs = await Promise.all(Array.from({ length: 16 }, () => get(path)))
    deepEqual([...new Set(logs.map(({ status }) => status))], [200])
    equal((await get(path)).status, 429)
    equal((await (await administrator())(path)).status, 200)
    await logs[0]?.body?.cancel()
    await eventually(async () => (await get(path)).status === 200 || undefined, 'a free place')
    await Promise.all(logs.slice(1).map(async ({ body }) => await body?.cancel()))
  })

  test('the status has the durations of the phases of the Run', async () => {
    const { status } = await app.client.resource(runResource).get(run, { namespace: 'a' })
    deepEqual(Object.keys(status?.phaseSeconds ?? {}), ['preparing', 'planning', 'applying'])
  })
})
