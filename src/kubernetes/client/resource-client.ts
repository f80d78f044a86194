import {
  isReason,
  type KubeList,
  type KubeObject,
  type NewObject,
  objectKey,
  type Resource,
  type Status,
  StatusError,
  type WatchEvent,
} from '../object/index.ts'
import type { Client } from './client.ts'
import { ConnectionError } from './connection-error.ts'
import { LineSplitter, WatchDecodeError } from './line-splitter.ts'
import { isMetadataOnly, metadataListType, metadataObjectType } from './metadata-only.ts'
import type {
  ApplyOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  PatchType,
  ResourceClientOptions,
  SignalOption,
  WatchOptions,
  WriteOptions,
} from './resource-options.ts'
import { type Query, resourcePath } from './resource-path.ts'
import { stripManagedFields } from './strip-managed-fields.ts'

const patchTypes: Record<PatchType, string> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
}

/** Called with the result of a write before the writer receives it, so that a cache can include it. Not called for dry runs. */
export type WriteObserver = {
  /** `object` is the whole object after the write; it has a `deletionTimestamp` if it waits for finalizers. */
  written(object: KubeObject<unknown>): void
  /** The object with this key (`namespace/name`) and uid no longer exists. */
  deleted(key: string, uid: string): void
  /** Returns what to create or apply in place of `object`. */
  prepare?<Body>(object: NewObject<Body>): NewObject<Body>
}

/** Reads and writes objects of one kind. All methods throw {@link StatusError}, or ConnectionError without a response. */
export class ResourceClient<Body = { [field: string]: unknown }> {
  readonly client: Client
  readonly resource: Resource<Body>
  readonly #isPartial: boolean
  readonly #observer: WriteObserver | undefined
  readonly #withManagedFields: boolean

  /** `observer` is for clients that wrap others; users call `client.resource(kind)`. */
  constructor(client: Client, resource: Resource<Body>, { managedFields = true }: ResourceClientOptions = {}, observer?: WriteObserver) {
    this.client = client
    this.resource = resource
    this.#isPartial = isMetadataOnly(resource)
    this.#withManagedFields = managedFields
    this.#observer = observer
  }

  /** @throws {StatusError} NotFound. */
  async get(name: string, options: GetOptions = {}): Promise<KubeObject<Body>> {
    const object = await this.#object('GET', this.#path(options.namespace, name), options, this.#accept(metadataObjectType))
    return this.#isPartial ? this.#reduce(object) : object
  }

  /** Like {@link get}, but returns undefined for an object that does not exist. */
  async getOrUndefined(name: string, options: GetOptions = {}): Promise<KubeObject<Body> | undefined> {
    try {
      return await this.get(name, options)
    } catch (error) {
      if (isReason(error, 'NotFound')) return undefined
      throw error
    }
  }

  /** One page of objects; `metadata.continue` is set if there are more. */
  async list(options: ListOptions = {}): Promise<KubeList<KubeObject<Body>>> {
    const { namespace, labelSelector, fieldSelector, shardSelector, limit, continue: token, resourceVersion, signal } = options
    const response = await this.client.request({
      method: 'GET',
      path: resourcePath(this.resource, namespace),
      query: { labelSelector, fieldSelector, shardSelector, limit, continue: token || undefined, resourceVersion },
      signal,
      ...this.#accept(metadataListType),
    })
    const list = (await response.json()) as KubeList<KubeObject<Body>>
    if (
      typeof list?.metadata?.resourceVersion !== 'string' ||
      !(Array.isArray(list.items) || list.items === null || list.items === undefined)
    ) {
      throw notAnObject(this.resource, list)
    }
    // Go encodes an empty list as null in types without omitempty.
    list.items ??= []
    // Servers omit the kind in the items of typed lists; readers need it on every object.
    const { apiVersion, kind } = this.resource
    if (this.#isPartial) list.items = list.items.map(item => this.#reduce(item))
    if (!this.#withManagedFields) for (const item of list.items) delete item.metadata.managedFields
    for (const item of list.items) {
      item.apiVersion ??= apiVersion
      item.kind ??= kind
    }
    return list
  }

  /** All objects, in pages of `limit` (default 500). `metadata` has the version of the first page, from which a watch may start. */
  async listAll(options: Omit<ListOptions, 'continue'> = {}): Promise<KubeList<KubeObject<Body>>> {
    const limit = options.limit ?? 500
    const first = await this.list({ ...options, limit })
    let token = first.metadata.continue
    while (token) {
      let page: KubeList<KubeObject<Body>>
      try {
        page = await this.list({ ...options, limit, resourceVersion: undefined, continue: token })
      } catch (error) {
        // The continue token expired between pages: a single response with all objects is always consistent.
        if (isReason(error, 'Expired', 'Gone')) return await this.list({ ...options, limit: undefined })
        throw error
      }
      for (const item of page.items) first.items.push(item)
      token = page.metadata.continue
    }
    return { ...first, metadata: { resourceVersion: first.metadata.resourceVersion } }
  }

  async create(object: NewObject<Body>, options: WriteOptions = {}): Promise<KubeObject<Body>> {
    return this.#write('POST', this.#path(object.metadata.namespace ?? options.namespace), options, {
      query: this.#writeQuery(options),
      body: this.#complete(this.prepare(object), options),
    })
  }

  /** What {@link create} and {@link apply} send for an object: a client that wraps another may add labels. */
  prepare(object: NewObject<Body>): NewObject<Body> {
    return this.#observer?.prepare?.(object) ?? object
  }

  /** Replaces the object; with `metadata.resourceVersion` only if it has not changed since (Conflict otherwise). */
  async update(object: NewObject<Body>, options: WriteOptions = {}): Promise<KubeObject<Body>> {
    return await this.#replace(object, undefined, options)
  }

  async updateStatus(object: NewObject<Body>, options: WriteOptions = {}): Promise<KubeObject<Body>> {
    return await this.#replace(object, 'status', options)
  }

  async patch(name: string, patch: object, options: PatchOptions): Promise<KubeObject<Body>> {
    const { type, namespace, subresource, resourceVersion } = options
    if (resourceVersion !== undefined && type === 'json') {
      throw new TypeError(
        'resourceVersion cannot be used with a json patch: add { "op": "test", "path": "/metadata/resourceVersion", … } to it',
      )
    }
    return this.#write('PATCH', this.#path(namespace, name, subresource), options, {
      query: this.#writeQuery(options),
      body: resourceVersion === undefined ? patch : withResourceVersion(patch, resourceVersion),
      headers: { 'content-type': patchTypes[type] },
      // Appending to a list is not idempotent; a merge is.
      idempotent: type === 'merge',
    })
  }

  /** A merge patch of the status subresource: `patchStatus('a', { status: { phase: 'Ready' } })`; null deletes a field. */
  patchStatus(
    name: string,
    mergePatch: { status: object | null; metadata?: object },
    options: Omit<PatchOptions, 'type' | 'subresource'> = {},
  ): Promise<KubeObject<Body>> {
    return this.patch(name, mergePatch, { ...options, type: 'merge', subresource: 'status' })
  }

  /** Server-side apply: creates the object, or takes ownership of the given fields. @throws {StatusError} Conflict without `force`. */
  async apply(object: NewObject<Body>, options: ApplyOptions = {}): Promise<KubeObject<Body>> {
    const { name, namespace } = object.metadata
    if (!name) throw new TypeError(`cannot apply a ${this.resource.kind} without metadata.name: apply does not support generateName`)
    const { managedFields: _, ...metadata } = object.metadata
    return await this.#write('PATCH', this.#path(namespace ?? options.namespace, name, options.subresource), options, {
      query: { ...this.#writeQuery(options), force: options.force ? true : undefined },
      body: this.#complete(this.prepare({ ...object, metadata }), options),
      // JSON is YAML, and every server version accepts it.
      headers: { 'content-type': 'application/apply-patch+yaml' },
      idempotent: true,
    })
  }

  /** Resolves when the server has accepted the deletion. Returns the object if it remains until its finalizers are removed. */
  async delete(name: string, options: DeleteOptions = {}): Promise<KubeObject<Body> | undefined> {
    const { namespace, propagationPolicy, gracePeriodSeconds, preconditions, dryRun, signal } = options
    const hasBody = propagationPolicy !== undefined || gracePeriodSeconds !== undefined || preconditions !== undefined || dryRun
    const response = await this.client.request({
      method: 'DELETE',
      path: this.#path(namespace, name),
      signal,
      ...(hasBody && {
        body: {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          propagationPolicy,
          gracePeriodSeconds,
          preconditions,
          ...(dryRun && { dryRun: ['All'] }),
        },
      }),
    })
    const result = (await response.json()) as { kind?: string; metadata?: { uid?: string }; details?: { uid?: string } }
    if (result.kind === 'Status' || !result.metadata?.uid) {
      const uid = result.details?.uid
      if (uid && !dryRun) this.#observer?.deleted(objectKey({ metadata: { name, namespace: this.#namespace(namespace) } }), uid)
      return undefined
    }
    const object = result as KubeObject<Body>
    if (object.metadata.deletionTimestamp && !dryRun) this.#observer?.written(object)
    return object
  }

  /**
   * Deletes all objects that the selectors match with one request, which needs the verb `deletecollection`. There are no preconditions: the selectors must
   * match nothing that is to remain. Caches learn of the deletions by their watch only.
   * @throws {TypeError} without a selector, which would match every object.
   */
  async deleteCollection({ namespace, labelSelector, fieldSelector, propagationPolicy, signal }: DeleteCollectionOptions): Promise<void> {
    if (!labelSelector && !fieldSelector) throw new TypeError(`cannot delete ${this.resource.plural} without a selector`)
    await this.client.request({
      method: 'DELETE',
      path: this.#path(namespace),
      query: { labelSelector, fieldSelector },
      signal,
      ...(propagationPolicy !== undefined && { body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy } }),
    })
  }

  /**
   * Events as the server sends them, bookmarks included; one connection, no reconnect (that is `listWatch`). Ends when
   * the server ends it or `signal` aborts.
   * @throws {StatusError} for a rejected watch and for an ERROR event: Expired means list again. @throws {WatchDecodeError} for what is not JSON.
   */
  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<KubeObject<Body>>, void, undefined> {
    for await (const lines of this.watchLines(options)) {
      for (const line of lines) {
        if (options.signal?.aborted) return
        yield this.parseEvent(line)
      }
    }
  }

  /** Like {@link watch}, but returns unparsed lines as they arrive: for readers of many events. {@link parseEvent} parses one. */
  async *watchLines(options: WatchOptions): AsyncGenerator<string[], void, undefined> {
    const { signal, idleTimeoutMs = 0, namespace, onResponse, ...query } = options
    const path = resourcePath(this.resource, namespace)
    try {
      const { body } = await this.client.stream({
        method: 'GET',
        path,
        query: { watch: true, ...query },
        signal,
        idleTimeoutMs,
        ...this.#accept(metadataObjectType),
      })
      onResponse?.()
      const splitter = new LineSplitter()
      for await (const chunk of body) {
        const lines = splitter.push(chunk as Buffer)
        if (lines.length > 0) yield lines
        if (signal?.aborted) return
      }
      if (splitter.bufferedBytes > 0 && !signal?.aborted) throw new WatchDecodeError(`the watch of ${path} ended within a line`)
    } catch (error) {
      if (signal?.aborted) return
      if (error instanceof Error && typeof (error as NodeJS.ErrnoException).code === 'string') {
        throw error instanceof ConnectionError ? error : new ConnectionError(this.client.server, `watch of ${path}`, error)
      }
      throw error
    }
  }

  /** Parses one line of {@link watchLines}. @throws as {@link watch} does. */
  parseEvent(line: string): WatchEvent<KubeObject<Body>> {
    let event: WatchEvent<KubeObject<Body>>
    try {
      event = JSON.parse(this.#withManagedFields ? line : stripManagedFields(line)) as WatchEvent<KubeObject<Body>>
    } catch {
      throw new WatchDecodeError(`a watch of ${this.resource.plural} received data that is not JSON: ${JSON.stringify(line.slice(0, 200))}`)
    }
    if (event?.type === 'ERROR') throw StatusError.fromStatus(event.object as unknown as Status)
    if (typeof event?.type !== 'string' || typeof event.object?.metadata?.resourceVersion !== 'string') {
      throw new WatchDecodeError(
        `a watch of ${this.resource.plural} received data that is not an event: ${JSON.stringify(line.slice(0, 200))}`,
      )
    }
    if (!this.#withManagedFields && event.object.metadata.managedFields) delete event.object.metadata.managedFields
    return this.#isPartial ? { type: event.type, object: this.#reduce(event.object) } : event
  }

  #accept(type: string): { headers?: Record<string, string> } {
    return this.#isPartial ? { headers: { accept: type } } : {}
  }

  /** The metadata with the original kind instead of PartialObjectMetadata, even if the server sent the whole object. */
  #reduce({ metadata }: KubeObject<Body>): KubeObject<Body> {
    const { apiVersion, kind } = this.resource
    return { apiVersion, kind, metadata } as KubeObject<Body>
  }

  #namespace(namespace: string | undefined): string | undefined {
    return this.resource.scope === 'Namespaced' ? (namespace ?? this.client.defaultNamespace) : undefined
  }

  #path(namespace: string | undefined, name?: string, subresource?: string): string {
    return resourcePath(this.resource, this.#namespace(namespace), name, subresource)
  }

  #writeQuery({ dryRun, fieldManager = this.client.fieldManager, fieldValidation }: WriteOptions): Query {
    return { fieldManager, fieldValidation, dryRun: dryRun ? 'All' : undefined }
  }

  #complete(object: NewObject<Body>, { namespace }: WriteOptions): NewObject<Body> {
    const { apiVersion, kind, scope } = this.resource
    const metadata =
      scope === 'Namespaced'
        ? { ...object.metadata, namespace: object.metadata.namespace ?? namespace ?? this.client.defaultNamespace }
        : object.metadata
    return { ...object, apiVersion, kind, metadata }
  }

  async #replace(object: NewObject<Body>, subresource: string | undefined, options: WriteOptions): Promise<KubeObject<Body>> {
    const { name, namespace } = object.metadata
    if (!name) throw new TypeError(`cannot update a ${this.resource.kind} without metadata.name`)
    return await this.#write('PUT', this.#path(namespace ?? options.namespace, name, subresource), options, {
      query: this.#writeQuery(options),
      body: this.#complete(object, options),
    })
  }

  async #write(
    method: string,
    path: string,
    options: WriteOptions,
    rest: { query?: Query; body?: object; headers?: Record<string, string>; idempotent?: boolean },
  ): Promise<KubeObject<Body>> {
    const object = await this.#object(method, path, options, rest)
    // The response of a subresource such as `scale` is an object of another kind.
    if (this.#observer && !options.dryRun && object.kind === this.resource.kind) this.#observer.written(object)
    return object
  }

  async #object(
    method: string,
    path: string,
    { signal }: SignalOption,
    rest: { query?: Query; body?: object; headers?: Record<string, string>; idempotent?: boolean } = {},
  ): Promise<KubeObject<Body>> {
    const response = await this.client.request({ method, path, signal, isShort: true, ...rest })
    if (this.#withManagedFields) return this.#checked((await response.json()) as KubeObject<Body>)
    let object: KubeObject<Body>
    try {
      object = JSON.parse(stripManagedFields(await response.text())) as KubeObject<Body>
    } catch {
      // Throws an error that describes the response.
      object = (await response.json()) as KubeObject<Body>
    }
    if (this.#checked(object).metadata.managedFields) delete object.metadata.managedFields
    return object
  }

  #checked(object: KubeObject<Body>): KubeObject<Body> {
    if (typeof object?.metadata !== 'object' || object.metadata === null) throw notAnObject(this.resource, object)
    return object
  }
}

function withResourceVersion(patch: object, resourceVersion: string): object {
  const { metadata } = patch as { metadata?: object }
  return { ...patch, metadata: { ...metadata, resourceVersion } }
}

function notAnObject({ kind }: Resource<unknown>, value: unknown): StatusError {
  return new StatusError(
    'InternalError',
    `expected a ${kind} from the server, got ${JSON.stringify(value)?.slice(0, 200)}: is this an API server?`,
  )
}
