import { deepEqual, equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fetch } from 'undici'
import { eventually } from '../../../test/support/eventually.ts'
import { type RequestOptions, type Response, WrappedClient } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { endpointsName, readEndpoints } from '../discovery/index.ts'
import { startControllerProcess } from './controller-process.ts'

class WithoutEndpoints extends WrappedClient {
  isForbidden = true

  override async request(options: RequestOptions): Promise<Response> {
    if (this.isForbidden && options.method === 'PATCH' && options.path.endsWith(`/configmaps/${endpointsName}`))
      throw new StatusError('Forbidden', 'configmaps is forbidden')
    return await this.inner.request(options)
  }
}

test('a leader is ready when the address of its queue is published, and removes the address on a clean stop', async () => {
  await using api = await startTestServer()
  const client = new WithoutEndpoints(api.client)
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-controller-'))
  const address = { host: '127.0.0.1', port: 0 }
  const controller = await startControllerProcess({
    ...{ client, access: {}, cacheDir: join(dataDir, 'cache'), allowPaths: [], http: address, crds: 'install', version: 'test' },
    queue: { dataDir, listen: address, names: [] },
    log: silentLog,
    onLeadershipLost: () => undefined,
  })
  const ready = async () => {
    const response = await fetch(`${controller.httpUrl}/readyz`)
    return { status: response.status, text: await response.text() }
  }
  await controller.whenLeader
  const reported = await eventually(ready, ({ text }) => text.includes('not published: '))
  equal(reported.status, 503)
  match(reported.text, /its address is not published: configmaps is forbidden/)
  client.isForbidden = false
  await eventually(ready, ({ status }) => status === 200)
  equal((await readEndpoints(api.client)).queue?.url.startsWith('https://127.0.0.1:'), true)
  await controller.stop({ graceMs: 5_000 })
  deepEqual(await readEndpoints(api.client), {})
  rmSync(dataDir, { recursive: true, force: true })
})
