import { join } from 'node:path'
import { StatusError } from '../../object/index.ts'
import { removeCopies, sendCopy } from '../../util/index.ts'
import type { Authorizer } from '../auth/index.ts'
import type { Store } from '../storage/index.ts'
import { sendError } from '../wire/index.ts'
import type { Mount } from './handler-types.ts'

export type BackupMountOptions = {
  store: Store
  dataDir: string
  authorize: Authorizer
  onInternalError: (error: unknown) => void
}

/** Name prefix of temporary copies. A process that is killed during a backup leaves one behind; the next start removes it. */
const temporaryPrefix = 'backup.sending'

/**
 * `GET /backup`: a copy of the database, for `oarlock backup`. It contains every object, so it requires the right to `get` this path,
 * which only administrators have. The copy is in the data directory until it is sent. One backup at a time.
 */
export function backupMount({ store, dataDir, authorize, onInternalError }: BackupMountOptions): Mount {
  const copy = join(dataDir, temporaryPrefix)
  removeCopies(copy)
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
          throw new StatusError('TooManyRequests', 'another backup is in progress: retry when it has finished', {
            details: { retryAfterSeconds: 1 },
          })
        isBusy = true
        try {
          await sendCopy({ response, path: copy, copy: path => store.backUp(path), contentType: 'application/vnd.sqlite3' })
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
