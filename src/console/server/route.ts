import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Client } from '../../kubernetes/client/index.ts'
import type { ReachedBy } from './cookies.ts'
import type { CallTasks } from './offload/index.ts'
import type { ConsoleServerOptions } from './options.ts'
import type { SessionRecord } from './sessions.ts'
import type { Visibility } from './visibility.ts'

/** A request of a user who is signed in. */
export type Call = {
  readonly session: SessionRecord
  /** What follows the name of the route, decoded. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly reachedBy: ReachedBy
  readonly options: ConsoleServerOptions
  /** Which rows of tables the user may see. */
  readonly visibility: Visibility
  /** Aborted when the browser no longer waits. */
  readonly tasks: CallTasks
  /** Of the API server and the stores, with the rights of the user. */
  client(): Promise<Client>
  /** @throws {StatusError} if it is not a JSON object, or larger than 1 MiB. */
  body(): Promise<object>
}

/** Returns what is sent as JSON with status 200, bytes as they are; undefined if it has answered already. */
export type Route = (call: Call) => Promise<unknown>

/** By method and name: `GET plans` answers `GET plans/…`. A read-only console answers only those with GET. */
export type Routes = Readonly<Record<`${'GET' | 'POST' | 'PUT' | 'DELETE'} ${string}`, Route>>
