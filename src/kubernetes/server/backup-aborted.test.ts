import { equal } from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { eventually } from '../../../test/support/eventually.ts'
import { startTestServer } from './server.testing.ts'

function linkOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}
const openCopies = () => readdirSync('/proc/self/fd').filter(descriptor => linkOf(descriptor).includes('backup.sending'))

// Node ends a process in which an open file is garbage collected.
test('a client that disconnects during its backup leaves no file open', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async () => {
  const server = await startTestServer()
  try {
    const { caCertificate, port } = server.server
    for (let attempt = 0; attempt < 5; attempt++) {
      const socket = connect({ host: '127.0.0.1', port, ca: caCertificate }).on('error', () => {})
      await new Promise(resolve => socket.once('secureConnect', resolve))
      socket.write(`GET /backup HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.adminToken}\r\n\r\n`)
      await new Promise(setImmediate)
      socket.destroy()
      // One at a time: the next one succeeds when the aborted one has ended.
      await eventually(async () => (await server.call('/backup')).code === 200, 'the next backup')
    }
    await eventually(() => openCopies().length === 0, 'the copies to be closed', 5_000)
    equal((await server.call('/healthz')).code, 200)
  } finally {
    await server.close()
  }
})
