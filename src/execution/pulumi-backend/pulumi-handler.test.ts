import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { listenPulumi } from './listen.ts'
import { MemoryBackend } from './memory-backend.testing.ts'
import { PulumiBackendError } from './pulumi-backend.ts'
import { accessToken, createPulumiFixture, devPath } from './pulumi-client.testing.ts'
import { createPulumiHandler } from './pulumi-handler.ts'

const deployment = (...names: string[]) => ({
  manifest: { time: '', magic: '', version: '' },
  resources: names.map(name => ({ urn: name })),
})
const entry = (sequenceID: number, kind = 0) => ({ version: 1, kind, sequenceID, operationID: 1, removeOld: null, removeNew: null })

describe('user and stacks', () => {
  test('the user, the default organization, the capabilities and the version of the CLI are answered', async t => {
    const { call } = await createPulumiFixture(t)
    const user = await call('GET', '/api/user')
    equal(user.status, 200)
    equal(user.json.githubLogin, 'run')
    deepEqual(
      (user.json.organizations as { githubLogin: string }[]).map(each => each.githubLogin),
      ['apps', 'other'],
    )
    equal((await call('GET', '/api/user/organizations/default')).json.githubLogin, 'apps')
    const { capabilities } = (await call('GET', '/api/capabilities')).json as { capabilities: { capability: string }[] }
    deepEqual(
      capabilities.map(each => each.capability),
      ['batch-encrypt', 'deployment-schema-version'],
    )
    const version = await call('GET', '/api/cli/version')
    deepEqual(version.json, { latestVersion: '3.260.0', oldestWithoutWarning: '3.260.0', latestDevVersion: '' })
  })

  test('delta checkpoints are offered only on request', async t => {
    const { call } = await createPulumiFixture(t, { deltaCutoffBytes: 4096 })
    match(
      (await call('GET', '/api/capabilities')).text,
      /"delta-checkpoint-uploads-v2","version":2,"configuration":\{"checkpointCutoffSizeBytes":4096\}/,
    )
  })

  test('stacks are listed page by page, filtered by organization and project', async t => {
    const { backend, call } = await createPulumiFixture(t)
    for (const key of ['apps/web/prod', 'apps/web/test', 'other/db/dev']) backend.stacks.set(key, { tags: {}, versions: [] })
    const first = (await call('GET', '/api/user/stacks?organization=apps&project=web')).json as {
      stacks: { stackName: string }[]
      continuationToken: string
    }
    deepEqual(
      first.stacks.map(each => each.stackName),
      ['dev', 'prod'],
    )
    const second = await call('GET', `/api/user/stacks?organization=apps&project=web&continuationToken=${first.continuationToken}`)
    equal(second.text.includes('"stackName":"test"'), true)
    equal('continuationToken' in second.json, false)
  })

  test('a project is found, a stack is created, read, tagged, renamed and deleted', async t => {
    const { backend, call } = await createPulumiFixture(t)
    equal((await call('HEAD', '/api/stacks/apps/web')).status, 200)
    equal((await call('HEAD', '/api/stacks/apps/none')).status, 404)
    const state = { version: 3, deployment: deployment('a') }
    equal((await call('POST', '/api/stacks/apps/web', { body: { stackName: 'prod', tags: { a: 'b' }, state } })).status, 200)
    equal(Buffer.from(backend.stacks.get('apps/web/prod')!.versions[0]!).toString(), JSON.stringify(state))
    const again = await call('POST', '/api/stacks/apps/web', { body: { stackName: 'prod' } })
    deepEqual([again.status, again.json.code], [409, 409])
    match(String(again.json.message), /already exists/)
    const read = (await call('GET', '/api/stacks/apps/web/prod')).json as Record<string, unknown>
    deepEqual(read, {
      ...{ id: 'apps/web/prod', orgName: 'apps', projectName: 'web', stackName: 'prod', activeUpdate: '', tags: { a: 'b' }, version: 1 },
    })
    equal((await call('PATCH', '/api/stacks/apps/web/prod/tags', { body: { c: 'd' } })).status, 200)
    deepEqual(backend.stacks.get('apps/web/prod')!.tags, { c: 'd' })
    const withResources = await call('DELETE', '/api/stacks/apps/web/prod')
    // The CLI compares this text.
    deepEqual(withResources.json, { code: 400, message: 'Bad Request: Stack still contains resources.' })
    equal((await call('POST', '/api/stacks/apps/web/prod/rename', { body: { newName: 'live', newProject: '' } })).status, 200)
    equal((await call('GET', '/api/stacks/apps/web/prod')).status, 404)
    equal((await call('DELETE', '/api/stacks/apps/web/live?force=true')).status, 200)
    equal((await call('GET', '/api/stacks/apps/web/live')).status, 404)
  })

  test('configuration in an ESC environment is refused with a reason, and without one is accepted', async t => {
    const { call } = await createPulumiFixture(t)
    const refused = await call('PUT', `${devPath}/config`, { body: { environment: 'team/env' } })
    equal(refused.status, 400)
    match(String(refused.json.message), /ESC/)
    equal((await call('PUT', `${devPath}/config`, { body: { environment: '', secretsProvider: 'passphrase' } })).status, 200)
    equal((await call('POST', '/api/stacks/apps/web', { body: { stackName: 'new', config: { environment: 'team/env' } } })).status, 400)
  })
})

describe('state and secrets', () => {
  test('an import is exported byte for byte, also an older version, and its update has succeeded', async t => {
    const { call } = await createPulumiFixture(t)
    deepEqual((await call('GET', `${devPath}/export`)).json, { version: 3, deployment: null })
    // Larger than 2^53, with an escape and spaces: parsing and printing would change it.
    const first = '{"version":3, "deployment":{"n":12345678901234567890,"t":"\\u003c"}}'
    const imported = await call('POST', `${devPath}/import`, { bytes: Buffer.from(first), gzip: true })
    equal(imported.status, 200)
    const polled = (await call('GET', `${devPath}/update/${imported.json.updateId}`)).json as Record<string, unknown>
    deepEqual(polled, { status: 'succeeded', events: [] })
    equal((await call('GET', `${devPath}/export`)).text, first)
    await call('POST', `${devPath}/import`, { body: { version: 3, deployment: deployment() } })
    equal((await call('GET', `${devPath}/export/1`)).text, first)
    equal((await call('GET', `${devPath}/export/9`)).status, 404)
    equal((await call('GET', `${devPath}/export/x`)).status, 404)
    equal((await call('POST', `${devPath}/import`, { body: {} })).status, 400)
  })

  test('the address at which secrets were encrypted is that of the client in every export', async t => {
    const { backend, call, url } = await createPulumiFixture(t)
    const state = (address: string) =>
      `{"version":3,"deployment":{"manifest":{"n":12345678901234567890},"secrets_providers":{"type":"service","state":{"url":"${address}","owner":"apps","project":"web","stack":"dev"}},"resources":[]}}`
    backend.stacks.get('apps/web/dev')!.versions.push(Buffer.from(state('http://127.0.0.1:1')))
    equal((await call('GET', `${devPath}/export`)).text, state(url))
    equal((await call('GET', `${devPath}/export/1`, { headers: { host: 'localhost:7777' } })).text, state('http://localhost:7777'))
    for (const other of [
      '{"version":3,"deployment":{"secrets_providers":{"type":"passphrase","state":{"salt":"v1"}}}}',
      '{"version":3,"deployment":{"secrets_providers":null}}',
      '{"version":3,"deployment":{"resources":[{"outputs":{"secrets_providers":{"type":"service","state":{"url":"x"}}}}]}}',
    ]) {
      backend.stacks.get('apps/web/dev')!.versions.push(Buffer.from(other))
      equal((await call('GET', `${devPath}/export`)).text, other)
    }
  })

  test('secrets are encrypted and decrypted, one or many, and of a stack only by that stack', async t => {
    const { backend, call } = await createPulumiFixture(t)
    backend.stacks.set('apps/web/prod', { tags: {}, versions: [] })
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    const one = await call('POST', `${devPath}/encrypt`, { body: { plaintext: base64('hidden') } })
    const { plaintext } = (await call('POST', `${devPath}/decrypt`, { body: { ciphertext: one.json.ciphertext } })).json
    equal(plaintext, base64('hidden'))
    const plaintexts = ['a', '', 'c'].map(base64)
    const many = await call('POST', `${devPath}/batch-encrypt`, { body: { plaintexts }, gzip: true })
    const ciphertexts = many.json.ciphertexts as string[]
    const decrypted = await call('POST', `${devPath}/batch-decrypt`, { body: { ciphertexts }, gzip: true })
    deepEqual(decrypted.json.plaintexts, Object.fromEntries(ciphertexts.map((each, i) => [each, plaintexts[i]])))
    equal((await call('POST', '/api/stacks/apps/web/prod/decrypt', { body: { ciphertext: one.json.ciphertext } })).status, 400)
    equal((await call('POST', `${devPath}/decrypt`, { body: { ciphertext: 'no base64' } })).status, 400)
    const tooMany = await call('POST', `${devPath}/batch-encrypt`, { body: { plaintexts: Array(10_001).fill('') }, gzip: true })
    equal(tooMany.status, 413)
    equal((await call('POST', `${devPath}/encrypt`, { body: { plaintext: '', other: Array(4_000_001).fill(0) }, gzip: true })).status, 413)
    for (const path of ['log-decryption', 'log-batch-decryption'])
      equal((await call('POST', `${devPath}/decrypt/${path}`, { body: { secretName: 'x' } })).status, 200)
  })
})

describe('updates', () => {
  for (const kind of ['update', 'refresh', 'destroy'])
    test(`a ${kind} starts, writes its journal, reports events and completes`, async t => {
      const { backend, call, start } = await createPulumiFixture(t)
      const update = await start(kind)
      equal(update.answer.status, 200)
      deepEqual(Object.keys(update.answer.json).sort(), ['journalVersion', 'token', 'tokenExpiration', 'version'])
      equal(update.answer.json.journalVersion, 1)
      equal((await call('GET', update.path)).text, '{"status":"running","events":[],"continuationToken":"0"}\n')
      equal((await call('GET', devPath)).json.activeUpdate, update.id)
      equal((await update.call('PATCH', 'journalentries', { entries: [entry(1), entry(2, 1)] })).status, 200)
      const events = [
        {
          sequence: 1,
          timestamp: 5,
          summaryEvent: { resourceChanges: { create: 2 }, durationSeconds: 3, isPreview: false, result: 'succeeded' },
        },
        { sequence: 2, timestamp: 5, unknownEvent: {} },
      ]
      equal((await update.call('POST', 'events/batch', { events })).status, 200)
      equal((await update.call('POST', 'events', { sequence: 3, timestamp: 6, stdoutEvent: { message: 'hello' } })).status, 200)
      deepEqual(
        backend.events.map(each => each.kind),
        ['summary', 'output'],
      )
      const renewed = await update.call('POST', 'renew_lease', { token: '', duration: 300 })
      equal(renewed.json.token, update.token)
      equal((await update.call('POST', 'complete', { status: 'succeeded' })).status, 200)
      // The answer was lost: the CLI repeats it.
      equal((await update.call('POST', 'complete', { status: 'succeeded' })).status, 200)
      deepEqual(backend.calls, [`startUpdate ${kind} 1`, 'appendJournalEntries 1: 1 2', 'renewUpdate 1', 'completeUpdate 1 succeeded'])
      const [started] = backend.started
      deepEqual(Object.keys(started ?? {}).sort(), ['cliVersion', 'id', 'isJournaled', 'isPreview', 'kind', 'number', 'stack'])
      deepEqual([started?.cliVersion, started?.isJournaled, started?.isPreview], ['3.260.0', true, false])
      equal((await call('GET', devPath)).json.activeUpdate, '')
      equal((await call('GET', update.path)).text, '{"status":"succeeded","events":[]}\n')
      const latest = (await call('GET', `${devPath}/updates/latest`)).json as { info: Record<string, unknown> }
      deepEqual([latest.info.kind, latest.info.version, latest.info.result], [kind, 1, 'succeeded'])
      equal(((await call('GET', `${devPath}/updates?pageSize=10&page=1`)).json.updates as unknown[]).length, 1)
      deepEqual((await call('GET', `${devPath}/updates/latest/previews?asc=false`)).json, { updates: [] })
    })

  test('entries are passed byte for byte, in the order of the requests', async t => {
    const { backend, start } = await createPulumiFixture(t)
    const update = await start()
    const texts = ['{"sequenceID":1, "kind":0,"x":"a]},\\"{"}', '{"sequenceID":2,"kind":77,"big":12345678901234567890}']
    const body = Buffer.from(`{ "entries" : [ ${texts.join(' , ')} ] }`)
    equal((await update.call('PATCH', 'journalentries', undefined, { bytes: body })).status, 200)
    deepEqual(
      backend.journal.map(each => each.text),
      texts,
    )
    deepEqual(
      backend.journal.map(each => each.value.kind),
      [0, 77],
    )
    let release = () => {}
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    backend.before = () => held
    const third = update.call('PATCH', 'journalentries', { entries: [entry(3)] })
    await new Promise(resolve => setTimeout(resolve, 20))
    backend.before = () => {}
    const fourth = update.call('PATCH', 'journalentries', { entries: [entry(4)] })
    const completed = update.call('POST', 'complete', { status: 'failed' })
    let isAnswered = false
    void third.then(() => {
      isAnswered = true
    })
    await new Promise(resolve => setTimeout(resolve, 50))
    equal(isAnswered, false, 'answered before it was stored')
    release()
    deepEqual(await Promise.all([third, fourth, completed].map(async each => (await each).status)), [200, 200, 200])
    deepEqual(backend.calls.slice(-3), ['appendJournalEntries 1: 3', 'appendJournalEntries 1: 4', 'completeUpdate 1 failed'])
  })

  test('a second update conflicts while one is active; a preview does not, and writes no state', async t => {
    const { backend, call, start } = await createPulumiFixture(t)
    const first = await start()
    const second = await start()
    deepEqual([second.answer.status, second.answer.json.code], [409, 409])
    const preview = await start('preview')
    equal(preview.answer.status, 200)
    equal((await preview.call('PATCH', 'journalentries', { entries: [entry(1)] })).status, 409)
    equal((await preview.call('POST', 'renew_lease', { token: '', duration: 300 })).json.token, preview.token)
    equal((await preview.call('POST', 'complete', { status: 'succeeded' })).status, 200)
    // "pulumi up" previews as an update that changes nothing.
    const dryRun = await start('update', { options: { dryRun: true } })
    equal(dryRun.answer.status, 200)
    deepEqual(backend.calls, [
      'startUpdate update 1',
      'startUpdate preview preview 0',
      'renewUpdate 0',
      'completeUpdate 0 succeeded',
      'startUpdate update preview 0',
    ])
    for (const [method, path, body] of [
      ['POST', `${devPath}/import`, { version: 3, deployment: deployment() }],
      ['POST', `${devPath}/rename`, { newName: 'x' }],
      ['DELETE', `${devPath}?force=true`, undefined],
      ['POST', first.path, {}],
    ] as const)
      equal((await call(method, path, { body })).status, 409, `${method} ${path}`)
    equal((await first.call('POST', 'complete', { status: 'succeeded' })).status, 200)
    equal((await start()).answer.status, 200)
  })

  test('after a refusal as fenced everything of the update is 403, and what it still sends is kept', async t => {
    const { backend, start, errors } = await createPulumiFixture(t)
    const update = await start()
    backend.before = call => {
      if (call === 'appendJournalEntries') throw new PulumiBackendError('Fenced', 'Run web-3 has the lock')
    }
    const refused = await update.call('PATCH', 'journalentries', { entries: [entry(1)] })
    deepEqual(refused.json, { code: 403, message: 'Run web-3 has the lock' })
    equal(backend.refused.length, 0, 'the backend keeps those that it refuses')
    equal((await update.call('PATCH', 'journalentries', { entries: [entry(2)] })).status, 403)
    equal((await update.call('PATCH', 'checkpoint', { version: 3, deployment: deployment('a') })).status, 403)
    for (const [path, body] of [
      ['renew_lease', { token: '', duration: 300 }],
      ['events/batch', { events: [] }],
      ['complete', { status: 'failed' }],
    ] as const)
      equal((await update.call('POST', path, body)).status, 403, path)
    deepEqual(
      backend.refused.map(each => each.kind),
      ['journalEntries', 'checkpoint'],
    )
    deepEqual(errors, [])
  })

  test('after the handler is fenced every write is 403 and kept, reads and previews still work', async t => {
    const { backend, call, handler, start, errors } = await createPulumiFixture(t, { maxRefusedBytes: 300 })
    const update = await start()
    handler.fence('the worker lost its Lease')
    const refused = await update.call('PATCH', 'journalentries', { entries: [entry(1)] })
    deepEqual(refused.json, { code: 403, message: 'the worker lost its Lease' })
    equal((await update.call('POST', 'renew_lease', { token: '', duration: 300 })).status, 403)
    for (let i = 2; i < 20; i++) equal((await update.call('PATCH', 'journalentries', { entries: [entry(i)] })).status, 403)
    const kept = backend.refused.flatMap(each => (each.kind === 'journalEntries' ? each.entries : []))
    deepEqual(
      kept.map(each => each.sequenceId),
      [1, 2, 3],
      'the limit of refused bytes',
    )
    equal(errors.length, 1)
    match(String(errors[0]), /refused write of \d+ bytes was dropped, because at most 300 bytes/)
    equal((await call('POST', `${devPath}/update`, { body: {} })).status, 403)
    equal((await call('POST', `${devPath}/import`, { body: { version: 3, deployment: deployment() } })).status, 403)
    equal((await call('GET', `${devPath}/export`)).status, 200)
    equal((await start('preview')).answer.status, 200)
  })

  test('a canceled update writes no more, and another may start', async t => {
    const { backend, call, start } = await createPulumiFixture(t)
    const update = await start()
    backend.before = name => {
      if (name === 'completeUpdate') throw new PulumiBackendError('Unavailable', 'retry')
    }
    equal((await call('POST', `${update.path}/cancel`)).status, 503)
    backend.before = () => {}
    equal((await call('POST', `${update.path}/cancel`)).status, 200)
    equal((await call('POST', `${update.path}/cancel`)).status, 200)
    equal((await update.call('PATCH', 'journalentries', { entries: [entry(1)] })).status, 403)
    deepEqual(backend.calls, ['startUpdate update 1', 'completeUpdate 1 cancelled', 'keepRefused 1 journalEntries'])
    equal((await start()).answer.status, 200)
  })

  test('updates whose CLI has ended are abandoned, and another may start', async t => {
    const { backend, handler, start } = await createPulumiFixture(t)
    const update = await start()
    await start('preview')
    await update.call('PATCH', 'journalentries', { entries: [entry(1)] })
    deepEqual(
      (await handler.abandonUpdates()).map(each => each.id),
      [update.id],
    )
    deepEqual(await handler.abandonUpdates(), [])
    equal((await update.call('PATCH', 'journalentries', { entries: [entry(2)] })).status, 403)
    equal(backend.journal.length, 1)
    const next = await start()
    equal(next.answer.status, 200)
    equal(backend.started.at(-1)?.number, 2)
  })

  test('what a CLI had sent before it was killed is stored when its updates are abandoned', async t => {
    const { backend, handler, start, url } = await createPulumiFixture(t)
    const update = await start()
    const body = JSON.stringify({ entries: [entry(1)] })
    const head = `PATCH ${update.path}/journalentries HTTP/1.1\r\nHost: x\r\nAuthorization: update-token ${update.token}\r\n`
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    await new Promise<void>(resolve => socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, () => resolve()))
    deepEqual((await handler.abandonUpdates()).length, 1)
    socket.destroy()
    deepEqual(backend.calls, ['startUpdate update 1', 'appendJournalEntries 1: 1'])
  })

  test('a start that the backend refuses leaves no active update', async t => {
    const { backend, call, start } = await createPulumiFixture(t)
    backend.before = () => {
      throw new PulumiBackendError('Conflict', 'the stack is locked by user ada')
    }
    const refused = await start()
    deepEqual(refused.answer.json, { code: 409, message: 'the stack is locked by user ada' })
    backend.before = () => {}
    equal((await start()).answer.status, 200)
    equal((await call('POST', '/api/stacks/apps/web/none/update', { body: {} })).status, 404)
  })

  test('the journal is offered to tested versions of the CLI only, and only if they ask for it', async t => {
    const { call } = await createPulumiFixture(t)
    const offered = async (userAgent: string, body: unknown) => {
      const created = await call('POST', `${devPath}/update`, { body: {}, headers: { 'user-agent': userAgent } })
      const path = `${devPath}/update/${created.json.updateID}`
      const answer = await call('POST', path, { body, headers: { 'user-agent': userAgent } })
      await call('POST', `${path}/cancel`)
      return (answer.json as { journalVersion?: number }).journalVersion
    }
    equal(await offered('pulumi-cli/1 (v3.260.1; linux; cmd=up)', { journalVersion: 1 }), 1)
    equal(await offered('pulumi-cli/1 (3.260.0-alpha.1; darwin; )', { journalVersion: 1 }), 1)
    equal(await offered('pulumi-cli/1 (v3.260.1; linux; cmd=up)', {}), undefined)
    equal(await offered('pulumi-cli/1 (v3.26.0; linux)', { journalVersion: 1 }), undefined)
    equal(await offered('pulumi-cli/1 (v4.0.0; linux)', { journalVersion: 1 }), undefined)
    equal(await offered('curl/8', { journalVersion: 1 }), undefined)
  })

  test('updates are forgotten above a limit, but not while they run', async t => {
    const { call, start } = await createPulumiFixture(t, { maxUpdates: 3 })
    const first = await start()
    for (let i = 0; i < 5; i++) await call('POST', `${devPath}/preview`, { body: {} })
    equal((await first.call('PATCH', 'journalentries', { entries: [] })).status, 200)
    await start('preview')
    await start('preview')
    const refused = await call('POST', `${devPath}/preview`, { body: {} })
    deepEqual([refused.status, refused.json.code], [429, 429])
  })
})

describe('access and limits', () => {
  test('a missing or wrong token is 401 on every route, also the token of another update', async t => {
    const { backend, call, start } = await createPulumiFixture(t)
    const update = await start()
    const preview = await start('preview')
    for (const token of ['', 'x', `${accessToken}x`, accessToken.toUpperCase(), update.token])
      for (const [method, path] of [
        ['GET', '/api/user'],
        ['GET', `${devPath}/export`],
        ['POST', `${devPath}/decrypt`],
        ['GET', '/nothing/here'],
      ] as const) {
        const refused = await call(method, path, { token, ...(method === 'POST' && { body: {} }) })
        deepEqual([refused.status, refused.json.code], [401, 401], `${method} ${path}`)
      }
    for (const path of ['journalentries', 'checkpoint', 'checkpointverbatim', 'checkpointdelta'])
      for (const options of [{}, { updateToken: preview.token }, { updateToken: '' }, { updateToken: accessToken }])
        equal((await call('PATCH', `${update.path}/${path}`, { body: { entries: [entry(1)] }, ...options })).status, 401, path)
    const otherStack = update.path.replace('/dev/', '/prod/')
    equal((await call('PATCH', `${otherStack}/journalentries`, { body: {}, updateToken: update.token })).status, 401)
    equal((await call('GET', '/api/user', { headers: { authorization: `Bearer ${accessToken}` } })).status, 401)
    deepEqual(backend.journal, [])
  })

  test('an unknown path or method is 404 with code and message', async t => {
    const { call } = await createPulumiFixture(t)
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/api/esc/environments'],
      ['PUT', '/api/user'],
      ['GET', `${devPath}/policypacks`],
      ['GET', '/api/stacks/apps/web/..%2f..%2fx'],
      ['GET', '/api/stacks/apps/web/%ff'],
      ['GET', '/api//stacks/apps/web/dev'],
      ['GET', `/${'a/'.repeat(1_000)}`],
    ] as const) {
      const answer = await call(method, path)
      equal(answer.status, 404, path)
      equal(answer.json.code, 404)
      ok((answer.json.message as string).length > 0)
    }
  })

  test('a base path is required in front of every route', async t => {
    const { call } = await createPulumiFixture(t, { basePath: '/pulumi' })
    equal((await call('GET', '/pulumi/api/user')).status, 200)
    equal((await call('GET', '/api/user')).status, 404)
  })

  test('a body above the limit is 413, also unpacked from a few bytes', async t => {
    const { backend, call, start } = await createPulumiFixture(t, { maxBodyBytes: 1_048_576 })
    const update = await start()
    const plain = await update.call('PATCH', 'journalentries', undefined, { bytes: Buffer.alloc(1_048_577, ' '), gzip: false })
    deepEqual([plain.status, plain.json.code], [413, 413])
    // 256 MiB of spaces in 256 KB: unpacking stops at the limit.
    const bomb = gzipSync(Buffer.alloc(256 * 1_048_576, ' '))
    ok(bomb.byteLength < 1_048_576, `${bomb.byteLength}`)
    const rss = process.memoryUsage().rss
    for (let i = 0; i < 20; i++) {
      const refused = await call('PATCH', `${update.path}/journalentries`, {
        bytes: bomb,
        updateToken: update.token,
        headers: { 'content-encoding': 'gzip' },
      })
      equal(refused.status, 413)
    }
    ok(process.memoryUsage().rss - rss < 64 * 1_048_576, 'memory grew')
    deepEqual(backend.journal, [])
  })

  test('a request that the backend finds too large is 413, which makes the CLI send halves', async t => {
    const { backend, start } = await createPulumiFixture(t)
    const update = await start()
    backend.before = () => {
      throw new PulumiBackendError('TooLarge', 'a batch has at most 10 bytes')
    }
    equal((await update.call('PATCH', 'journalentries', { entries: [entry(1), entry(2)] })).status, 413)
    backend.before = () => {}
    equal((await update.call('PATCH', 'journalentries', { entries: [entry(1)] })).status, 200)
  })

  test('malformed bodies are 400 or 415, and repeat nothing of the body', async t => {
    const { backend, call, start } = await createPulumiFixture(t)
    const update = await start()
    const bodies: [string, Record<string, string>, number][] = [
      ['{"entries":[{"secret":"hunter2"', {}, 400],
      ['['.repeat(100_000), {}, 400],
      [`{"entries":${'['.repeat(501)}${']'.repeat(501)}}`, {}, 400],
      ['{"entries":{}}', {}, 400],
      ['{"entries":[5]}', {}, 400],
      ['{"entries":[{"kind":0}]}', {}, 400],
      ['{}', {}, 400],
      ['{"entries":[{"kind":0,"sequenceID":1.5}]}', {}, 400],
      ['[]', {}, 400],
      ['null', {}, 400],
      ['plain', { 'content-encoding': 'gzip' }, 400],
      ['plain', { 'content-encoding': 'br' }, 415],
    ]
    for (const [text, headers, status] of bodies) {
      const answer = await call('PATCH', `${update.path}/journalentries`, { bytes: Buffer.from(text), updateToken: update.token, headers })
      equal(answer.status, status, text.slice(0, 50))
      ok(!answer.text.includes('hunter2'))
    }
    const notUtf8 = Buffer.concat([Buffer.from('{"entries":[],"x":"'), Buffer.from([0xff]), Buffer.from('"}')])
    equal((await call('PATCH', `${update.path}/journalentries`, { bytes: notUtf8, updateToken: update.token })).status, 400)
    deepEqual(backend.calls, ['startUpdate update 1'])
  })

  test('an unexpected error of the backend is 503 without its text', async t => {
    const { backend, call, errors } = await createPulumiFixture(t)
    backend.readDeployment = async () => {
      throw new Error('password is hunter2')
    }
    const answer = await call('GET', `${devPath}/export`)
    deepEqual([answer.status, answer.json.code], [503, 503])
    ok(!answer.text.includes('hunter2'))
    equal(errors.length, 1)
  })

  test('a body that stops arriving is 408', async t => {
    const { url } = await createPulumiFixture(t, { bodyIdleMs: 50 })
    const status = await new Promise(resolve => {
      const sent = request(`${url}${devPath}/update`, {
        ...{ method: 'POST', headers: { authorization: `token ${accessToken}`, 'content-length': '100' } },
      })
      sent.on('error', () => {})
      sent.once('response', response => {
        resolve(response.statusCode)
        response.resume()
      })
      sent.write('{')
    })
    equal(status, 408)
  })

  test('it serves on a Unix socket, and refuses an access token that is too short', async t => {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-pulumi-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    const socketPath = join(directory, 'backend.sock')
    const endpoint = await listenPulumi(createPulumiHandler({ backend: new MemoryBackend(), accessToken }), { socketPath })
    t.after(async () => await endpoint.close())
    equal(endpoint.url, `unix:${socketPath}`)
    const status = await new Promise(resolve => {
      request({ socketPath, path: '/api/user', headers: { authorization: `token ${accessToken}` } }, response => {
        resolve(response.statusCode)
        response.resume()
      }).end()
    })
    equal(status, 200)
    try {
      createPulumiHandler({ backend: new MemoryBackend(), accessToken: 'short' })
      ok(false)
    } catch (error) {
      match((error as Error).message, /at least 16/)
    }
  })
})
