import { StatusError } from '../../object/index.ts'
import type { Authorizer } from '../auth/index.ts'
import type { KeyRotation, Store } from '../storage/index.ts'
import { send, sendError } from '../wire/index.ts'
import type { Mount } from './handler-types.ts'

export type KeyRotationMountOptions = {
  store: Store
  /** The names of all keys, the newest first. */
  keyNames(): readonly string[]
  authorize: Authorizer
  onInternalError: (error: unknown) => void
}

const methods: Readonly<Record<string, string>> = { '/encryption/rotate': 'POST', '/encryption/keys': 'GET' }

/**
 * `POST /encryption/rotate`, for `oarlock encryption rotate`: re-encrypts Secrets with a new key. With `?removeOldKeys=true` the old keys are
 * removed afterwards. `GET /encryption/keys` lists the names of the keys. They require the rights to `post` and to `get` these paths, which
 * only administrators have.
 */
export function keyRotationMount({ store, keyNames, authorize, onInternalError }: KeyRotationMountOptions): Mount {
  return {
    prefix: '/encryption/',
    async handler(request, response, { user }) {
      try {
        if (!user) throw new StatusError('Unauthorized', 'Unauthorized')
        const { pathname: path, searchParams } = new URL(request.url ?? '', 'http://localhost')
        if (methods[path] === undefined) throw new StatusError('NotFound', 'the server could not find the requested resource')
        if (request.method !== methods[path]) {
          throw new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource')
        }
        const verb = methods[path].toLowerCase()
        if (authorize({ user, verb, group: '', resource: '', path }) !== true)
          throw new StatusError('Forbidden', `forbidden: User ${JSON.stringify(user.name)} cannot ${verb} path "${path}"`)
        const result = verb === 'get' ? { keys: keyNames() } : await rotate(store, searchParams.get('removeOldKeys') === 'true')
        send(response, 200, 'application/json', JSON.stringify(result))
      } catch (error) {
        sendError(response, error, onInternalError)
      }
    },
  }
}

async function rotate(store: Store, removesOldKeys: boolean): Promise<KeyRotation> {
  try {
    return await store.rotateEncryptionKey({ removesOldKeys })
  } catch (error) {
    if (error instanceof StatusError) throw error
    // Such as a full disk: only administrators see it.
    throw new StatusError('InternalError', `the key rotation is incomplete and can be repeated: ${(error as Error).message}`)
  }
}
