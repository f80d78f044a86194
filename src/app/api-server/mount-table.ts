import type { Mount, MountHandler } from '../mount.ts'

/**
 * Routes on the address of the API server that other roles serve. They are declared before the server starts, and each responds with 503
 * until its handler is set.
 */
export class MountTable {
  readonly #handlers = new Map<string, MountHandler>()
  readonly #prefixes: readonly string[]

  constructor(prefixes: readonly string[]) {
    this.#prefixes = prefixes
  }

  set(prefix: string, handler: MountHandler): void {
    if (!this.#prefixes.includes(prefix)) throw new RangeError(`no mount ${prefix} is declared; declared are ${this.#prefixes.join(', ')}`)
    this.#handlers.set(prefix, handler)
  }

  mounts(): Mount[] {
    return this.#prefixes.map(prefix => ({
      prefix,
      handler: async (request, response, context) => {
        const handler = this.#handlers.get(prefix)
        if (handler) await handler(request, response, context)
        else response.writeHead(503, { 'Retry-After': '1' }).end()
      },
    }))
  }
}
