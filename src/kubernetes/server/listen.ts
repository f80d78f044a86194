import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:https'
import { ServerStartError, type ServerStartErrorCode } from './storage/index.ts'

/** @throws {ServerStartError} AddressInUse or AddressInvalid. */
export function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const what = listenErrors[error.code ?? '']
      reject(what ? new ServerStartError(what.code, `${host}:${port} ${what.text}`, { cause: error }) : error)
    })
    server.listen(port, host, () => resolve())
  })
}

const unknownAddress = {
  code: 'AddressInvalid',
  text: 'is not an address of this machine: choose another, such as 127.0.0.1 or 0.0.0.0',
} as const
const listenErrors: Readonly<Record<string, { code: ServerStartErrorCode; text: string }>> = {
  EADDRINUSE: {
    code: 'AddressInUse',
    text: 'is in use by another process: stop the other process, or choose another address (port 0 picks a free one)',
  },
  EACCES: { code: 'AddressInvalid', text: 'is not permitted for this user: choose a port of 1024 or above' },
  EADDRNOTAVAIL: unknownAddress,
  ENOTFOUND: unknownAddress,
  EAI_AGAIN: unknownAddress,
  EINVAL: unknownAddress,
}

/** Counts open connections; `getConnections` of node:net is asynchronous. */
export function countConnections(...servers: (HttpServer | Server)[]): () => number {
  let count = 0
  for (const server of servers) {
    server.on('connection', socket => {
      count++
      socket.once('close', () => count--)
    })
  }
  return () => count
}

/** The host part of a URL that reaches a listener on `host` from this machine. */
export function urlHost(host: string): string {
  if (host === '' || host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
