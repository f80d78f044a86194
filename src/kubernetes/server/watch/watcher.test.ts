import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { Http1Connection } from '../http/http1-connection.ts'
import { Registry } from '../registry/index.ts'
import type { Store, StoredEntry } from '../storage/index.ts'
import { Table } from '../storage/index.ts'
import { negotiate, type Reply } from '../wire/index.ts'
import { WatchManager } from './watch-manager.ts'
import type { Revalidate, Watcher } from './watcher.ts'

const everything = { namespace: '', name: undefined, isWhole: true, matches: () => true }

function entryAt(revision: number): StoredEntry {
  const name = `c${revision}`
  const text = `{"apiVersion":"v1","kind":"ConfigMap","data":{"revision":"${revision}","text":"${'x'.repeat(10_000)}"}}`
  const unset = { labels: undefined, owners: undefined, fields: undefined, uidHash: undefined, deleting: false }
  return { id: revision, key: name, namespace: '', name, uid: name, revision, text, ...unset }
}

async function withWatchers(
  run: (
    open: (reads: boolean, revalidate?: Revalidate) => Promise<Opened>,
    write: (revision: number) => void,
    watches: WatchManager,
  ) => Promise<void>,
) {
  const table = new Table('configmaps', { events: 100, bytes: 1e9 })
  const emptyStore = { table: () => table, onCommit() {}, nowMs: 0, revision: 0 } as unknown as Store
  const watches = new WatchManager(emptyStore)
  const kind = new Registry(emptyStore).find('', 'v1', 'configmaps')!
  const replies: Reply[] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    const handler = (_request: unknown, reply: Reply) => void replies.push(reply)
    new Http1Connection(socket, { handler, usesNodeHttp: () => false, onDelegate() {}, onClose() {} })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const open = async (reads: boolean, revalidate?: Revalidate): Promise<Opened> => {
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    while (replies.length === 0) await new Promise(setImmediate)
    const response = replies.pop()!
    response.writeHead(200)
    response.flushHeaders()
    let text = ''
    if (reads) socket.on('data', chunk => (text += chunk))
    const as = negotiate(undefined, undefined)
    const common = { kind, table, as, response, wantsBookmarks: false, revalidate }
    const watcher = watches.open({ ...common, selection: everything, maxBufferedBytes: 256 * 1024 }, 60_000)
    return {
      watcher,
      response,
      ended: once(
        socket.on('error', () => {}),
        'close',
      ),
      text: () => text,
    }
  }
  const write = (revision: number) => {
    const entry = entryAt(revision)
    const events = [table.apply(undefined, entry, entry)]
    for (const listener of table.listeners) listener(events)
  }
  try {
    await run(open, write, watches)
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}
type Opened = { watcher: Watcher; response: Reply; ended: Promise<unknown>; text(): string }

test('disconnects a watcher that does not read; another gets every event once, in valid chunks (invariants 6 and 10)', async () => {
  await withWatchers(async (open, write, watches) => {
    const slow = await open(false)
    const fast = await open(true)
    let revision = 0
    while (!slow.response.destroyed) {
      write(++revision)
      assert.ok(revision < 10_000, 'the slow watcher must be disconnected')
      while (!fast.text().includes(`"revision":"${revision}"`, fast.text().length - 20_000)) {
        assert.ok(!fast.response.destroyed, 'the fast watcher must stay connected')
        await new Promise(setImmediate)
      }
    }
    watches.close()
    while (!fast.text().endsWith('0\r\n\r\n')) await new Promise(setImmediate)
    const seen = [...fast.text().matchAll(/"revision":"(\d+)"/g)].map(([, number]) => Number(number))
    assert.deepEqual(
      seen,
      Array.from({ length: revision }, (_, index) => index + 1),
    )
    const body = fast.text().slice(fast.text().indexOf('\r\n\r\n') + 4)
    let lines = ''
    for (let rest = body; !rest.startsWith('0\r\n'); ) {
      const size = /^([0-9a-f]+)\r\n/.exec(rest)
      assert.ok(size, `a chunk must begin with its size, not with ${JSON.stringify(rest.slice(0, 20))}`)
      const start = size[0].length
      const length = Number.parseInt(size[1]!, 16)
      lines += rest.slice(start, start + length)
      assert.equal(rest.slice(start + length, start + length + 2), '\r\n')
      rest = rest.slice(start + length + 2)
    }
    assert.equal(lines.split('\n').length - 1, revision, 'one line for each event')
  })
})

test('a watch with a revoked credential ends at the next sweep', async () => {
  await withWatchers(async (open, write, watches) => {
    const checks: string[] = []
    let isRevoked = false
    const revoked = await open(true, scope => {
      checks.push(scope)
      return !isRevoked
    })
    const other = await open(true, () => true)
    isRevoked = true
    // A write to a credential table, such as the deletion of a token's Secret, makes the next sweep check credentials.
    write(1)
    while (watches.size > 1) await new Promise(resolve => setTimeout(resolve, 20))
    assert.deepEqual(checks, ['credential'])
    while (!revoked.text().endsWith('0\r\n\r\n')) await new Promise(setImmediate)
    assert.ok(!other.response.destroyed)
    watches.close()
  })
})
