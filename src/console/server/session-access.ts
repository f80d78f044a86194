import type { Client } from '../../kubernetes/client/index.ts'
import type { ConsoleServerOptions } from './options.ts'
import type { SessionRecord } from './sessions.ts'
import { Visibility } from './visibility.ts'

/** What each session reaches with the rights of its user: made when it is first needed, kept until the session ends or has another credential. */
export class SessionAccess {
  readonly #options: Pick<ConsoleServerOptions, 'connect' | 'isAllowed'>
  readonly #clients = new WeakMap<SessionRecord, Promise<Client>>()
  readonly #visibility = new WeakMap<SessionRecord, Visibility>()

  constructor(options: Pick<ConsoleServerOptions, 'connect' | 'isAllowed'>) {
    this.#options = options
  }

  client(session: SessionRecord): Promise<Client> {
    const known = this.#clients.get(session)
    if (known) return known
    const client = this.#options.connect(session.user, session.credential)
    this.#clients.set(session, client)
    client.catch(() => this.#clients.delete(session))
    return client
  }

  visibility(session: SessionRecord): Visibility {
    const known = this.#visibility.get(session)
    if (known) return known
    const visibility = new Visibility(session.user, this.#options.isAllowed)
    this.#visibility.set(session, visibility)
    return visibility
  }

  /** Ends the requests of a session that has ended. */
  end(session: SessionRecord): void {
    void this.#clients
      .get(session)
      ?.then(client => client.close())
      .catch(() => {})
  }

  /** The session has another credential: its requests end, and the next one connects again. */
  renew(session: SessionRecord): void {
    this.end(session)
    this.#clients.delete(session)
  }
}
