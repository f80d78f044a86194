import { randomUUID } from 'node:crypto'
import { trackUpdate } from '../../apply/index.ts'
import { equalJson, invalid, isReason, type KubeObject, rfc3339 } from '../../object/index.ts'
import { type Kind, kubernetesServiceIp, type Registry } from '../registry/index.ts'
import { mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

/** The address and port that clients reach this server at. */
export type ApiServerEndpoint = { readonly address: string; readonly port: number }

const namespace = 'default'
const name = 'kubernetes'
const key = `${namespace}/${name}`
/** The owner of the fields, as in Kubernetes. */
const manager = 'kube-apiserver'
const portName = 'https'
const servicePort = 443
const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror'
const serviceNameLabel = 'kubernetes.io/service-name'

/** The names and the address by which clients in Pods call the server; its certificate must cover them. */
export const kubernetesServiceNames: readonly string[] = [
  name,
  `${name}.${namespace}`,
  `${name}.${namespace}.svc`,
  `${name}.${namespace}.svc.cluster.local`,
  kubernetesServiceIp,
]

/**
 * Keeps the Service `default/kubernetes`, its Endpoints and its EndpointSlice, from which clients in Pods find this server. As in
 * kube-apiserver, a deleted object is recreated, the endpoints always name the current address, and the ports and the type of the Service
 * are restored at start only, so that an administrator may change the others. A Service without its reserved address is rebuilt at any time.
 */
export class KubernetesServiceController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #services: Kind
  readonly #endpoints: Kind
  readonly #slices: Kind
  readonly #tables: ReadonlyMap<Table, () => Promise<unknown>>
  readonly #onConflict: (message: string) => void
  #endpoint: ApiServerEndpoint | undefined
  /** Why the Service cannot be written: another Service has its address. */
  #conflict: string | undefined

  /** `onConflict` is called once for each reason why the Service cannot be written. */
  constructor(store: Store, registry: Registry, queue: TaskQueue, onConflict: (message: string) => void) {
    this.#store = store
    this.#onConflict = onConflict
    this.#queue = queue
    this.#services = registry.find('', 'v1', 'services')!
    this.#endpoints = registry.find('', 'v1', 'endpoints')!
    this.#slices = registry.find('discovery.k8s.io', 'v1', 'endpointslices')!
    this.#tables = new Map<Table, () => Promise<unknown>>([
      [this.#tableOf(this.#services), () => this.#ensureService(false)],
      [this.#tableOf(this.#endpoints), () => this.#ensureEndpoints()],
      [this.#tableOf(this.#slices), () => this.#ensureEndpointSlice()],
    ])
  }

  /** Writes what is missing or outdated, in one commit. A failed write is retried in the background. */
  async publish(endpoint: ApiServerEndpoint): Promise<void> {
    this.#endpoint = endpoint
    const tasks = [() => this.#ensureService(true), () => this.#ensureEndpoints(), () => this.#ensureEndpointSlice()]
    const tables = [...this.#tables.keys()]
    await Promise.all(tasks.map((task, index) => task().catch(() => this.#enqueue(tables[index]!, task))))
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    const task = this.#tables.get(table)
    if (!task || !this.#endpoint) return
    // Any Service may have released the address.
    const isReleased = this.#conflict !== undefined && table === this.#tableOf(this.#services)
    if (isReleased || events.some(({ entry }) => entry.key === key)) this.#enqueue(table, task)
  }

  #enqueue(table: Table, task: () => Promise<unknown>): void {
    this.#queue.add(`${table.name} ${key}`, async () => void (await task()))
  }

  #tableOf(kind: Kind): Table {
    return this.#store.table(kind.storageName)
  }

  async #ensureService(isStart: boolean): Promise<void> {
    try {
      await this.#writeService(isStart)
      this.#conflict = undefined
    } catch (error) {
      if (!isReason(error, 'Invalid')) throw error
      const { message } = error as Error
      if (message !== this.#conflict) this.#onConflict(message)
      this.#conflict = message
    }
  }

  #writeService(isStart: boolean): Promise<void> {
    const ports = [{ name: portName, protocol: 'TCP', port: servicePort, targetPort: this.#endpoint!.port }]
    const type = 'ClusterIP'
    const labels = { component: 'apiserver', provider: name }
    const spec = { ports, clusterIP: kubernetesServiceIp, type, sessionAffinity: 'None', ipFamilyPolicy: 'SingleStack' }
    return this.#ensure(this.#services, live => {
      if (!live) return { labels, spec }
      const current = live.spec as { ports?: unknown; type?: string; clusterIP?: string; selector?: object; externalName?: string }
      const isOwn = current.type === type && current.selector === undefined && current.externalName === undefined
      if (current.clusterIP !== kubernetesServiceIp || (isStart && !isOwn)) {
        return { labels: { ...live.metadata.labels, ...labels }, spec, status: { loadBalancer: {} } }
      }
      return isStart && !equalJson(current.ports, ports) ? { spec: { ...current, ports } } : undefined
    })
  }

  #ensureEndpoints(): Promise<unknown> {
    const { address, port } = this.#endpoint!
    const subsets = [{ addresses: [{ ip: address }], ports: [{ name: portName, port, protocol: 'TCP' }] }]
    return this.#ensure(this.#endpoints, live => {
      if (live && equalJson(live.subsets, subsets) && live.metadata.labels?.[skipMirrorLabel] === 'true') return undefined
      return { labels: { ...live?.metadata.labels, [skipMirrorLabel]: 'true' }, subsets }
    })
  }

  #ensureEndpointSlice(): Promise<unknown> {
    const { address, port } = this.#endpoint!
    const labels = { [serviceNameLabel]: name }
    const addressType = address.includes(':') ? 'IPv6' : 'IPv4'
    const endpoints = [{ addresses: [address], conditions: { ready: true } }]
    const ports = [{ name: portName, protocol: 'TCP', port }]
    return this.#ensure(this.#slices, live => {
      // The address type is immutable: the deletion is observed, and the slice is created again.
      if (live && live.addressType !== addressType) return 'delete'
      const isCurrent = live && equalJson([live.metadata.labels, live.endpoints, live.ports], [labels, endpoints, ports])
      return isCurrent ? undefined : { labels, addressType, endpoints, ports }
    })
  }

  /** Creates or updates the object with the labels and fields that `changesTo` returns; undefined if it needs no change. */
  async #ensure(kind: Kind, changesTo: (live: KubeObject | undefined) => Changes | 'delete' | undefined): Promise<void> {
    await mutate(this.#store, this.#tableOf(kind), key, head => {
      const live = head && parseEntry(head)
      const changes = head?.deleting ? undefined : changesTo(live)
      if (changes === undefined) return { result: undefined }
      if (changes === 'delete') return { remove: live! }
      return { put: live ? this.#updated(kind, live, changes) : this.#created(kind, changes) }
    })
  }

  #created(kind: Kind, { labels, ...fields }: Changes): KubeObject {
    const { nowMs } = this.#store
    const metadata: KubeObject['metadata'] = {
      name,
      namespace,
      uid: randomUUID(),
      resourceVersion: '',
      ...(kind.hasGeneration && { generation: 1 }),
      creationTimestamp: rfc3339(nowMs),
      ...(labels && { labels }),
    }
    const { strategy } = kind
    const object = strategy.default!({ apiVersion: kind.apiVersion, kind: kind.kind, metadata, ...fields })
    strategy.prepareForWrite?.(object, undefined)
    const owned = { ...object, ...(kind.hasStatus && { status: strategy.zeroValue?.status }) }
    strategy.prepareForCreate?.(object)
    this.#validate(kind, object)
    object.metadata = { ...metadata, managedFields: this.#track(kind, undefined, owned) }
    return object
  }

  #updated(kind: Kind, live: KubeObject, { labels, ...fields }: Changes): KubeObject {
    const { generation, ...metadata } = live.metadata
    const object: KubeObject = {
      ...live,
      ...fields,
      metadata: { ...metadata, ...(generation !== undefined && { generation: generation + 1 }), ...(labels && { labels }) },
    }
    if (kind === this.#services) {
      kind.strategy.prepareForWrite?.(object, undefined)
      kind.strategy.prepareForCreate?.(object)
    }
    this.#validate(kind, object)
    const managedFields = this.#track(kind, live, object)
    if (managedFields.length > 0) object.metadata.managedFields = managedFields
    return object
  }

  /** Only a Service is validated, which claims its address. Endpoints of users may not be loopback addresses; this one may. */
  #validate(kind: Kind, object: KubeObject): void {
    const causes = kind === this.#services ? kind.strategy.validate!(object, undefined) : []
    if (causes.length > 0) throw invalid(kind, name, causes)
  }

  #track(kind: Kind, before: KubeObject | undefined, after: KubeObject) {
    const { schema, apiVersion, strategy } = kind
    return trackUpdate({ before, after, zeroValue: strategy.zeroValue, manager, schema, apiVersion, nowMs: this.#store.nowMs })
  }
}

type Changes = { labels?: Record<string, string>; [field: string]: unknown }
