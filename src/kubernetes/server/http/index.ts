/**
 * @module http: from bytes to calls. Start reading at `handler.ts`.
 * In: requests of the TLS listener. Out: routed, authenticated and allowed calls for rest/, or an answer.
 * Every fault of a client is a 4xx with a Status; nothing a client sends may end the process or be a 500.
 */
export { backupMount } from './backup-mount.ts'
export { type HandlerOptions, makeHandler } from './handler.ts'
export type { Handler, HttpRequest, Mount } from './handler-types.ts'
export { type Listener, makeListener } from './listener.ts'
export { type LocalConnection, LocalConnections } from './local-connection.ts'
export { maxBodyBytes } from './read-body.ts'
export { type Route, readRoute } from './route.ts'
export { UnauthenticatedConnections } from './unauthenticated-connections.ts'
