import { describeResource, notFound, parseApiVersion, type Resource, StatusError } from '../object/index.ts'

/** How discovery sends its requests; {@link Client.request} fits. */
export type DiscoveryFetch = (path: string) => Promise<unknown>

type ApiResourceList = { resources?: { name: string; kind: string; namespaced: boolean }[] }

/** The kinds of a server, requested once per group and version, and again for a kind that was not among them. */
export class Discovery {
  readonly #fetch: DiscoveryFetch
  readonly #loads = new Map<string, Promise<Map<string, Resource>>>()

  constructor(fetch: DiscoveryFetch) {
    this.#fetch = fetch
  }

  /** @throws {StatusError} NotFound if the server has no such kind, even after a reload. */
  async find(apiVersion: string, kind: string): Promise<Resource> {
    const previous = this.#loads.get(apiVersion)
    const cached = (await previous?.catch(() => undefined))?.get(kind)
    if (cached) return cached
    // Concurrent callers that miss share one request.
    let load = this.#loads.get(apiVersion)
    if (load === undefined || load === previous) {
      load = this.#load(apiVersion)
      this.#loads.set(apiVersion, load)
      load.catch(() => this.#loads.delete(apiVersion))
    }
    const found = (await load).get(kind)
    if (found) return found
    const { group } = parseApiVersion(apiVersion)
    throw new StatusError(
      'NotFound',
      `no kind ${JSON.stringify(kind)} in apiVersion ${JSON.stringify(apiVersion)}: is its CRD installed, and is the version served?`,
      {
        details: { group: group || undefined, kind },
      },
    )
  }

  async #load(apiVersion: string): Promise<Map<string, Resource>> {
    if (!/^([a-z0-9.-]+\/)?[a-z0-9]+$/.test(apiVersion)) {
      throw notFound({ group: '', plural: 'apiVersions' }, apiVersion)
    }
    const { group, version } = parseApiVersion(apiVersion)
    let list: ApiResourceList
    try {
      list = (await this.#fetch(group ? `/apis/${group}/${version}` : `/api/${version}`)) as ApiResourceList
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) return new Map()
      throw error
    }
    const kinds = new Map<string, Resource>()
    for (const { name, kind, namespaced } of list.resources ?? []) {
      // `pods/log` and the like are subresources, not kinds.
      if (name.includes('/')) continue
      kinds.set(kind, describeResource({ group, version, kind, plural: name, scope: namespaced ? 'Namespaced' : 'Cluster' }))
    }
    return kinds
  }
}
