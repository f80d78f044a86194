import { describeResource, notFound, parseApiVersion, type Resource, StatusError } from '../object/index.ts'

/** How discovery asks the server; {@link Client.request} fits. */
export type Fetch = (path: string) => Promise<unknown>

type ApiResourceList = { resources?: { name: string; kind: string; namespaced: boolean }[] }

/** Which kinds a server has, asked once per group and version, and again for a kind it did not have then. */
export class Discovery {
  readonly #fetch: Fetch
  readonly #known = new Map<string, Promise<Map<string, Resource>>>()

  constructor(fetch: Fetch) {
    this.#fetch = fetch
  }

  /** @throws {StatusError} NotFound if the server has no such kind, even after asking again. */
  async find(apiVersion: string, kind: string): Promise<Resource> {
    const known = this.#known.get(apiVersion)
    const cached = (await known?.catch(() => undefined))?.get(kind)
    if (cached) return cached
    // Many callers that miss together share one question.
    let asking = this.#known.get(apiVersion)
    if (asking === undefined || asking === known) {
      asking = this.#load(apiVersion)
      this.#known.set(apiVersion, asking)
      asking.catch(() => this.#known.delete(apiVersion))
    }
    const found = (await asking).get(kind)
    if (found) return found
    const { group } = parseApiVersion(apiVersion)
    throw new StatusError(
      'NotFound',
      `no kind ${JSON.stringify(kind)} in apiVersion ${JSON.stringify(apiVersion)}: is its CRD applied, and is the version served?`,
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
