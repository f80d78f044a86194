/**
 * @module http: from bytes to calls. Start reading at `handler.ts`, then `resource-requests.ts`; `listener.ts` is the TLS listener.
 * In: requests of the TLS listener and of local connections. Out: routed, authenticated and authorized calls for rest/, or a response.
 * Every error of a client is a 4xx with a Status; nothing that a client sends may end the process or cause a 500.
 */

export { type Route, readRoute } from '../../object/route.ts'
export { backupMount } from './backup-mount.ts'
export { makeHandler } from './handler.ts'
export type { HandlerOptions } from './handler-options.ts'
export type { Handler, HttpRequest, Mount } from './handler-types.ts'
export { keyRotationMount } from './key-rotation-mount.ts'
export { type Listener, makeListener } from './listener.ts'
export { type LocalConnection, LocalConnections } from './local-connection.ts'
export { upgradeConnection } from './pod-streams.ts'
export { maxBodyBytes } from './read-body.ts'
