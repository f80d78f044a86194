import { deepEqual, equal } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, systemNamespace, workerPoolResource, workersNamespace } from '../../api/index.ts'
import { type Client, createClient, installKinds, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import { createJoinHandler } from './join-handler.ts'
import { endedAtAnnotation, joinTokenName, workerCredentialName } from './join-secrets.ts'
import { JoinService } from './join-service.ts'
import { parseJoinToken } from './join-token.ts'
import { createJoinToken } from './manage-tokens.ts'
import { serverTokenIssuer } from './server-token-issuer.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-join-limits-'))
const inWorkers = { namespace: workersNamespace }
let server: ApiServer
let client: Client
let nowMs = Date.now()

before(async () => {
  server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, oarlockResources)
  for (const name of [systemNamespace, workersNamespace])
    await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External' } })
})
beforeEach(async () => void (await client.request({ method: 'DELETE', path: `/api/v1/namespaces/${workersNamespace}/secrets` })))
after(async () => {
  await client?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const token = async () => (await createJoinToken(client, server.caCertificate, { pool: 'edge', ttlMs: 24 * 3_600_000 })).text

const clock = () => nowMs
const limited = (maxCredentials: { all: number; perToken: number }) =>
  new JoinService({ client, issueCredential: serverTokenIssuer(server, clock), maxCredentials, nowMs: clock })

const tryJoin = async (service: JoinService, text: string) => {
  const outcome = await service.join(text, 'vm')
  return 'code' in outcome ? `${outcome.code} ${outcome.message}` : 'joined'
}

test('one token cannot use up the credentials of all workers', async () => {
  const service = limited({ all: 1_000, perToken: 2 })
  const [greedy, other] = [await token(), await token()]
  const outcomes = []
  for (const text of [greedy, greedy, greedy, other]) outcomes.push(await tryJoin(service, text))
  deepEqual(outcomes, ['joined', 'joined', '429 the limit of 2 joined workers of one token is reached', 'joined'])
})

test('credentials that exist count towards the limit, not those that have been issued and ended since', async () => {
  const service = limited({ all: 3, perToken: 3 })
  const secrets = client.resource(secretResource)
  const full = '429 the limit of 3 joined workers is reached'
  const text = await token()
  // Starts of workers that ended, one per second.
  for (const worker of ['w1', 'w2', 'w3', 'w4', 'w5', 'w6']) {
    await service.issue(worker, 'edge', {})
    await secrets.delete(workerCredentialName(worker), inWorkers)
    nowMs += 1_000
  }
  equal(await tryJoin(service, text), 'joined')
  for (const worker of ['w7', 'w8']) await service.issue(worker, 'edge', {})
  nowMs += 5_000
  equal(await tryJoin(service, text), full)

  // It has ended, and remains until its Run has.
  const ended = { metadata: { annotations: { [endedAtAnnotation]: rfc3339(nowMs) } } }
  await secrets.patch(workerCredentialName('w7'), ended, { type: 'merge', ...inWorkers })
  nowMs += 5_000
  equal(await tryJoin(service, text), 'joined')
  nowMs += 5_000
  equal(await tryJoin(service, text), full)
  // All have expired.
  nowMs += 3_600_000
  equal(await tryJoin(service, text), 'joined')
})

/** A client whose lookups of the token do not end before `gate`; each calls `onLookup`. */
function delayLookups(text: string, gate: Promise<void>, onLookup: () => void): Client {
  const name = joinTokenName(parseJoinToken(text)!.id)
  const bound = (target: object, key: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, key)
    return typeof value === 'function' ? value.bind(target) : value
  }
  const secrets = new Proxy(client.resource(secretResource), {
    get: (target, key) =>
      key === 'getOrUndefined'
        ? async (...args: Parameters<typeof target.getOrUndefined>) => {
            if (args[0] === name) {
              onLookup()
              await gate
            }
            return await target.getOrUndefined(...args)
          }
        : bound(target, key),
  })
  const resource = (kind: Parameters<Client['resource']>[0]) => (kind === secretResource ? secrets : client.resource(kind))
  return new Proxy(client, { get: (target, key) => (key === 'resource' ? resource : bound(target, key)) })
}

test('anonymous clients at two addresses, with all lookups that they may have, do not delay a join at a third', async () => {
  const text = await token()
  const wrong = text.replace(/[a-z0-9]{10}/, '0123456789')
  const gate = Promise.withResolvers<void>()
  let lookups = 0
  const delayed = delayLookups(wrong, gate.promise, () => lookups++)
  const joinService = new JoinService({ client: delayed, issueCredential: serverTokenIssuer(server) })
  const handler = createJoinHandler({ joinService, caCertificate: server.caCertificate })
  const http = createServer((incoming, response) => void handler(incoming, response, { user: undefined }))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const post = async (body: object, localAddress: string) => {
    const sent = request({ host: '127.0.0.1', port, path: '/join', method: 'POST', localAddress, agent: false })
    sent.end(JSON.stringify(body))
    const [response] = await once(sent, 'response')
    await once(response.resume(), 'end')
    return response.statusCode as number
  }
  try {
    // 8 of each address are looked up at a time; the others wait.
    const attacks = ['127.0.0.2', '127.0.0.3'].flatMap(address => Array.from({ length: 20 }, () => post({ token: wrong }, address)))
    await eventually(() => lookups === 16, 'the lookups to begin')
    const joined = post({ token: text, name: 'vm' }, '127.0.0.1')
    equal(await Promise.race([joined, delay(10_000, 'no response', { ref: false })]), 200)
    gate.resolve()
    deepEqual(new Set(await Promise.all(attacks)), new Set([401]))
  } finally {
    gate.resolve()
    http.closeAllConnections()
    http.close()
  }
})
