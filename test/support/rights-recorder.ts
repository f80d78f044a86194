import { type Client, type RequestOptions, type Response, type StreamResponse, WrappedClient } from '../../src/kubernetes/client/index.ts'
import { isReason } from '../../src/kubernetes/object/index.ts'
import { authorizationVerb, readRoute } from '../../src/kubernetes/object/route.ts'

/** A client that records which rights its requests need, and which requests were forbidden. */
export class RightsRecorder extends WrappedClient {
  readonly #used: Set<string>
  readonly #forbidden: string[]

  constructor(inner: Client, used: Set<string>, forbidden: string[]) {
    super(inner)
    this.#used = used
    this.#forbidden = forbidden
  }

  override request(options: RequestOptions): Promise<Response> {
    return this.#record(options, super.request(options))
  }

  override stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    return this.#record(options, super.stream(options))
  }

  async #record<T>(options: RequestOptions, response: Promise<T>): Promise<T> {
    const right = rightOf(options)
    if (right) this.#used.add(right)
    try {
      return await response
    } catch (error) {
      if (isReason(error, 'Forbidden', 'Unauthorized')) this.#forbidden.push(`${right ?? options.path}: ${(error as Error).message}`)
      throw error
    }
  }
}

/** Such as `watch secrets of group ""`; undefined if the path is not that of a resource. */
function rightOf({ method, path, query }: RequestOptions): string | undefined {
  const url = new URL(path, 'http://server')
  const route = readRoute(url.pathname)
  if (route.type !== 'resource') return undefined
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) url.searchParams.set(name, String(value))
  const { group, plural, name, subresource } = route
  const verb = authorizationVerb(method, name, url.searchParams)
  return `${verb} ${plural}${subresource ? `/${subresource}` : ''} of group ${JSON.stringify(group)}`
}
