/**
 * @module console/server: serves the page, its stream and its actions. Start reading at `console-handler.ts`.
 * In: the projections, who signs in and with what, and clients with the rights of each user. Out: a handler for a listener.
 * A session has one user. What a table shows is filtered by what the user may list (`visibility.ts`); everything about one object, and every action,
 * is a request with the user's own credential, so the API server and the stores decide (`sessions.ts`).
 * Out of scope: how rows are made (`console/projection/`), listeners and processes (`app/`).
 */
export { ConsoleServer } from './console-handler.ts'
export { type OidcOptions, OidcProvider } from './oidc-provider.ts'
export { OneTimeLinks } from './one-time-links.ts'
export type { ConsoleServerOptions } from './options.ts'
export type { ConsoleUser, Credential } from './sessions.ts'
