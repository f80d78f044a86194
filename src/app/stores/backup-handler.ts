import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Log } from '../../kubernetes/controller/index.ts'
import { removeCopies, sendCopy } from '../../kubernetes/util/index.ts'
import type { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import type { MountHandler } from '../mount.ts'
import { writeTar } from '../tar.ts'
import type { Stores } from './stores.ts'

/** Below the paths of the states and the logs, so that they are reached wherever these are. No namespace and no Stack has such a path. */
export const stateBackupPath = '/state/backup'
export const logBackupPath = '/logs/backup'

/** What the stores answer about a copy of their states, as headers. */
export const backupHeaders = { keyId: 'oarlock-state-key', id: 'oarlock-stores-id', generation: 'oarlock-stores-generation' } as const

/** The right to back up an API server includes its stores. */
const backupRight = { verb: 'get', path: '/backup' } as const

/**
 * Serves a copy of the states and of the logs to users who may back up the API server, one at a time, and passes other requests on. States and plans
 * are encrypted in it as in the data directory; logs are not.
 */
export function createBackupHandlers({
  stores,
  access,
  log,
}: {
  stores: Pick<Stores, 'dataDir' | 'id' | 'generation' | 'state' | 'log'>
  access: Pick<AccessReviewer, 'isAllowed'>
  log: Pick<Log, 'error'>
}): { state: MountHandler; log: MountHandler } {
  const copy = join(stores.dataDir, 'state', 'backup.sending')
  removeCopies(copy)

  const sendStates: Send = async response => {
    const { number, nonce, time } = stores.generation.read()
    await sendCopy({
      response,
      path: copy,
      copy: path => stores.state.backUp(path),
      contentType: 'application/vnd.sqlite3',
      headers: {
        [backupHeaders.keyId]: stores.state.keyId,
        [backupHeaders.id]: stores.id,
        [backupHeaders.generation]: JSON.stringify({ number, nonce, time }),
      },
    })
  }
  const sendLogs: Send = async response => {
    response.writeHead(200, { 'Content-Type': 'application/x-tar', 'Cache-Control': 'no-store' })
    await pipeline(writeTar(stores.log.backUp()), response)
  }

  const handler = (send: Send): MountHandler => {
    let isBusy = false
    return async (request, response, { user }) => {
      const refuse = (status: number, code: string, message: string) =>
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: { code, message } }))
      if (request.method !== 'GET') return void refuse(405, 'MethodNotAllowed', `${request.method} is not allowed here, use GET`)
      if (!user) return void refuse(401, 'Unauthorized', 'credentials are required: the bearer token of a user')
      try {
        if (!(await access.isAllowed(user, backupRight)))
          return void refuse(
            403,
            'Forbidden',
            `User ${JSON.stringify(user.name)} may not create backups: the right to get "/backup" is missing`,
          )
      } catch (error) {
        log.error({ err: error }, 'the API server did not decide whether a user may create a backup')
        return void refuse(503, 'Unavailable', 'the API server did not answer whether the request is allowed; retry later')
      }
      if (isBusy) return void refuse(429, 'TooManyRequests', 'another backup is in progress: retry when it has finished')
      isBusy = true
      try {
        await send(response)
      } catch (error) {
        if (response.headersSent) return void response.destroy()
        log.error({ err: error }, 'a backup of the stores failed')
        refuse(500, 'InternalError', 'the stores failed to create the backup: their log has the cause')
      } finally {
        isBusy = false
      }
    }
  }
  return { state: handler(sendStates), log: handler(sendLogs) }
}

type Send = (response: Parameters<MountHandler>[1]) => Promise<void>
