import { equal, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { Partition } from './partition.ts'
import { SeenVersion } from './seen-version.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-partition-'))
const { cert, key } = makeCertificate(directory)
after(() => rmSync(directory, { recursive: true, force: true }))

type Held = { readonly method: string; readonly path: string; readonly socket: Socket; readonly response: ServerResponse }

/** A server that answers what `mayAnswer` allows; the rest is held until the end. */
async function withPartition(
  { headers, mayAnswer }: { readonly headers: Record<string, string>; mayAnswer(method: string, path: string): boolean },
  use: (partition: Partition, held: readonly Held[], seen: readonly Held[]) => Promise<void>,
): Promise<void> {
  const [held, seen]: [Held[], Held[]] = [[], []]
  const server = createServer(({ method = '', url: path = '', socket }, response) => {
    const each = { method, path, socket, response }
    seen.push(each)
    if (mayAnswer(method, path)) response.writeHead(200, headers).end('{}')
    else held.push(each)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const identity = { name: 'p', caCertificate: cert, certificate: cert, key }
  const partition = new Partition({ ...identity, server: `http://127.0.0.1:${port}` }, new SeenVersion())
  try {
    await use(partition, held, seen)
  } finally {
    await partition.close()
    server.closeAllConnections()
    server.close()
  }
}

const request = (name: string, path: string, method = 'GET') =>
  ({ method, path, user: { name, groups: [] }, headers: {}, ...(method === 'PATCH' && { body: Buffer.from('{}') }) }) as const
const configMap = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`
const metrics = '/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/x'

test('at a kube-apiserver, whose reads may wait for an aggregated API, a read that hangs delays no other of its user', async () => {
  await withPartition({ headers: {}, mayAnswer: (_, path) => path !== metrics }, async (partition, held) => {
    await partition.send(request('ada', configMap('warm')))
    const hanging = partition.send(request('ada', metrics)).catch(() => undefined)
    const others = await Promise.all(['1', '2', '3'].map(name => partition.send(request('ada', configMap(name)))))
    equal(others.length, 3)
    await eventually(() => held.length === 1, 'the read that hangs')
    await partition.close()
    await hanging
  })
})

test('at an Oarlock server, reads of one user in one turn share a connection, and those of others do not', async () => {
  await withPartition({ headers: { 'x-oarlock-version': '1' }, mayAnswer: () => true }, async (partition, _, seen) => {
    const connectionsOf = async (...users: readonly string[]) => {
      const before = seen.length
      await Promise.all(users.map((user, index) => partition.send(request(user, configMap(`${index}`)))))
      return new Set(seen.slice(before).map(({ socket }) => socket)).size
    }
    equal(await connectionsOf('ada', 'ada', 'ada', 'bob'), 4, 'it is not known yet what the server is, and connections are opened')
    equal(await connectionsOf('ada', 'ada', 'ada', 'ada'), 1)
    equal(await connectionsOf('ada', 'bob', 'ada', 'bob'), 2)
  })
})

test('slow writes of one user leave connections to others, and to its own Leases', async () => {
  const options = {
    headers: { 'x-oarlock-version': '1' },
    mayAnswer: (method: string, path: string) => method !== 'PATCH' || path.includes('leases'),
  }
  await withPartition(options, async (partition, held) => {
    const slow = Array.from({ length: 200 }, (_, index) =>
      partition.send(request('mallory', configMap(`${index}`), 'PATCH')).catch(() => undefined),
    )
    await eventually(() => held.length === 16, 'the slow writes in progress')
    const taken = new Set(held.map(({ socket }) => socket))
    equal(taken.size, 16)
    equal((await partition.send(request('bob', configMap('x')))).status, 200)
    equal((await partition.send(request('mallory', '/apis/coordination.k8s.io/v1/namespaces/a/leases/x', 'PATCH'))).status, 200)
    for (let answered = 0; answered < 200; ) {
      await eventually(() => held.length > answered, 'the next slow write')
      ok(held.length - answered <= 16)
      for (; answered < held.length; answered++) held[answered]?.response.writeHead(200).end('{}')
    }
    await Promise.all(slow)
    equal(held.length, 200)
  })
})
