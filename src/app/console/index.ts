/**
 * @module app/console: the console as a part of a process with controllers. Start reading at `start-console.ts`.
 * In: the caches of the manager, the API server, the data directory. Out: a handler of `/console/` for the plain HTTP listener, and links that sign in.
 * Out of scope: what it shows and does (`console/`).
 */
export { consoleLink, consoleTokenPath } from './console-access.ts'
export type { ConsoleSettings } from './console-settings.ts'
export { administratorOf, connectToOwnServer } from './own-server.ts'
export { startConsole } from './start-console.ts'
