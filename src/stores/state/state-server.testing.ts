import { deepStrictEqual } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { unixSocketUrl } from '../../kubernetes/util/index.ts'
import {
  createStateHandler,
  openStateStore,
  type RunHolder,
  StateClient,
  type StateHandlerOptions,
  type StateLimits,
  type StateStore,
} from './index.ts'

export type StateServer = {
  store: StateStore
  url: string
  port: number
  token: string
  server: Server
  /** Names of Runs that have abandoned their lock. */
  abandoned: Set<string>
  errors: unknown[]
  directory: string
  ca?: string
}

/** A minimal server: one stack with its token, a worker with the bearer token `worker`, a user with `user`. The header `X-User` names an authenticated user. */
export async function withStateServer(
  work: (server: StateServer) => Promise<void>,
  options: {
    limits?: Partial<StateLimits>
    handler?: Partial<StateHandlerOptions>
    tls?: boolean
    unix?: boolean
    nowMs?: () => number
    /** Which state version Runs and the Stack require. */
    stateVersion?: () => number
  } = {},
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-state-http-'))
  const store = await openStateStore({ directory, key: Buffer.alloc(32, 7), limits: options.limits, nowMs: options.nowMs })
  const abandoned = new Set<string>()
  const errors: unknown[] = []
  const handler = createStateHandler({
    store,
    authorize: async ({ stack, basicPassword = '', runName, requiresUser, subresource }) => {
      if (stack !== 'net') return { allowed: false, code: 404, message: `stack ${stack} not found` }
      const stateVersion = options.stateVersion?.()
      if (runName !== undefined && basicPassword === 'worker') return { allowed: true, stackUid: 'uid', access: 'run', stateVersion }
      if (basicPassword === 'user') return { allowed: true, stackUid: 'uid', access: 'user', stateVersion }
      if (requiresUser || subresource === 'fence') return { allowed: false, code: 403, message: 'a user is required' }
      if (await store.checkStackToken('uid', basicPassword)) return { allowed: true, stackUid: 'uid', access: 'user' }
      return { allowed: false, code: basicPassword === '' ? 401 : 403, message: 'the token is not of this stack' }
    },
    isLockAbandoned: async ({ runName }: RunHolder) => abandoned.has(runName),
    onError: error => errors.push(error),
    ...options.handler,
  })
  const listener: RequestListener = (req, res) => {
    const name = req.headers['x-user']
    void handler(req, res, { user: typeof name === 'string' ? { name, groups: [] } : undefined })
  }
  const tls = options.tls ? makeCertificate(directory) : undefined
  const ca = tls?.cert
  const server = tls ? createTlsServer({ cert: tls.cert, key: tls.key }, listener) : createServer(listener)
  const socketPath = join(directory, 'api.sock')
  await new Promise<void>(resolve => (options.unix ? server.listen(socketPath, resolve) : server.listen(0, '127.0.0.1', resolve)))
  const { port } = server.address() as AddressInfo
  try {
    const url = options.unix ? unixSocketUrl(socketPath) : `${ca === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
    await work({ store, url, port, token: await store.stackToken('uid'), server: server as Server, abandoned, errors, directory, ca })
    deepStrictEqual(errors, [])
  } finally {
    server.closeAllConnections()
    server.close()
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Calls the Terraform backend with the stack's token. */
export const backendOf = ({ url, token }: Pick<StateServer, 'url' | 'token'>) => {
  const authorization = `Basic ${Buffer.from(`any:${token}`).toString('base64')}`
  return async (method: string, path = '', body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/state/apps/net${path}`, { method, body, headers: { authorization, ...headers } })
    const text = await response.text()
    return { status: response.status, text, json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {} }
  }
}
/** A client of Run `run-<epoch>`. */
export const clientOf = ({ url, ca }: StateServer, epoch: number, options = {}) =>
  new StateClient({
    baseUrl: url,
    caCertificate: ca,
    token: 'worker',
    namespace: 'apps',
    stack: 'net',
    runName: `run-${epoch}`,
    epoch,
    deadlineMs: 5_000,
    ...options,
  })

export const lockInfo = (ID: string) => ({
  ID,
  Operation: 'OperationTypeApply',
  Who: 'ada@host',
  Version: '1.11.4',
  Created: '2026-11-21T09:00:00Z',
  Path: '',
})
