import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import type { Server } from 'node:http'
import { type Log, unixSocketUrl } from '../util/index.ts'

/** The kernel's limit, without the zero at the end: unix(7). */
const maxPathBytes = process.platform === 'linux' ? 107 : 103

/**
 * Makes `server` listen on a Unix socket with mode 0600. A socket at `path` is one that a killed server left: the caller holds the lock of
 * the data directory. Closing the server removes the socket.
 * @returns the URL; undefined if the socket cannot be used. The reason is logged, and clients use TLS.
 */
export async function listenOnUnixSocket(server: Server, path: string, log: Log): Promise<string | undefined> {
  try {
    const bytes = Buffer.byteLength(path)
    if (bytes > maxPathBytes) throw new Error(`the path has ${bytes} bytes, and at most ${maxPathBytes} are allowed`)
    removeStaleSocket(path)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(path, () => {
        server.off('error', reject)
        resolve()
      })
    })
    chmodSync(path, 0o600)
    return unixSocketUrl(path)
  } catch (error) {
    server.close()
    log.warn({ path, reason: (error as Error).message }, 'cannot listen on the Unix socket: local clients use TLS')
    return undefined
  }
}

function removeStaleSocket(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return
  if (!found.isSocket()) throw new Error('a file that is no socket has this path')
  unlinkSync(path)
}
