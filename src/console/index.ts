/**
 * @module console: the web page of an installation, and the projections it reads. Start reading at `protocol/index.ts`.
 * In: the objects as caches report them, users and clients with their rights. Out: a handler of `/console/`.
 * `page/` runs in browsers, `server/` answers it from `projection/`, and `protocol/` is what they send each other.
 * Out of scope: listeners and processes (`app/`).
 */
export { FleetMonitor, History, type HistoryEntry, type PartitionBody, Projections } from './projection/index.ts'
export type { ControllerRow, Scaling } from './protocol/index.ts'
export {
  ConsoleServer,
  type ConsoleServerOptions,
  type ConsoleUser,
  type Credential,
  type OidcOptions,
  OidcProvider,
  OneTimeLinks,
} from './server/index.ts'
