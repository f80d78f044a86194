import { readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { StatusError } from '../../object/index.ts'
import type { Authorizer } from '../auth/index.ts'
import { type Store, writeAtomically } from '../storage/index.ts'
import { sendError } from '../wire/index.ts'
import type { Mount } from './handler-types.ts'

export type BackupMountOptions = {
  store: Store
  dataDir: string
  authorize: Authorizer
  onInternalError: (error: unknown) => void
}

/** Begins the names of what a process leaves in the data directory that dies while it makes a backup; the next start removes it. */
const leftover = 'backup.sending'

/**
 * `GET /backup`: the database as it is now, for `oarlock backup`. Every secret is in there, so only who may `get` this path (an
 * administrator) gets it. The copy lies beside the database until it is sent; one at a time.
 */
export function backupMount({ store, dataDir, authorize, onInternalError }: BackupMountOptions): Mount {
  const copy = join(dataDir, leftover)
  for (const name of readdirSync(dataDir)) if (name.startsWith(leftover)) rmSync(join(dataDir, name), { force: true })
  let isBusy = false
  return {
    prefix: '/backup',
    async handler(request, response, { user }) {
      try {
        if (!user) throw new StatusError('Unauthorized', 'Unauthorized')
        if (request.url !== '/backup') throw new StatusError('NotFound', 'the server could not find the requested resource')
        if (request.method !== 'GET') {
          throw new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
        }
        const allowed = authorize({ user, verb: 'get', group: '', resource: '', path: '/backup' })
        if (allowed !== true) throw new StatusError('Forbidden', `forbidden: User ${JSON.stringify(user.name)} cannot get path "/backup"`)
        if (isBusy)
          throw new StatusError('TooManyRequests', 'a backup is under way: try again when it is done', {
            details: { retryAfterSeconds: 1 },
          })
        isBusy = true
        try {
          await writeAtomically(
            copy,
            temporary => store.backUp(temporary),
            () => {},
          )
          const file = await open(copy)
          // The name goes at once, the bytes with the last reader.
          rmSync(copy)
          const { size } = await file.stat()
          response.writeHead(200, { 'Content-Type': 'application/vnd.sqlite3', 'Content-Length': size, 'Cache-Control': 'no-store' })
          await pipeline(file.createReadStream(), response)
        } finally {
          isBusy = false
        }
      } catch (error) {
        if (response.headersSent) response.destroy()
        else sendError(response, error, onInternalError)
      }
    },
  }
}
