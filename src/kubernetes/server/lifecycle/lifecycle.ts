import type { ServiceAccountTokens } from '../auth/index.ts'
import type { Quotas } from '../quota/index.ts'
import type { Registry } from '../registry/index.ts'
import type { Store } from '../storage/index.ts'
import { ClusterRoleController } from './cluster-role-controller.ts'
import { CrdController } from './crd-controller.ts'
import { expireEvents } from './expire-events.ts'
import { GarbageCollector, type GarbageCollectorOptions } from './garbage-collector.ts'
import { type ApiServerEndpoint, KubernetesServiceController } from './kubernetes-service-controller.ts'
import { NamespaceController } from './namespace-controller.ts'
import { NamespaceDefaultsController } from './namespace-defaults-controller.ts'
import { ensurePriorityClasses } from './priority-classes.ts'
import { renewLeasesAfterCrash } from './renew-leases.ts'
import { ResourceQuotaController } from './resource-quota-controller.ts'
import { TaskQueue } from './task-queue.ts'
import { TokenSecretController } from './token-secret-controller.ts'

const eventCleanupIntervalMs = 60_000

export type LifecycleOptions = {
  serviceAccounts: ServiceAccountTokens
  quotas: Quotas
  /** PEM, for `kube-root-ca.crt` and the Secrets of service accounts. */
  caCertificate: string
  /** False: namespaces get no ServiceAccount and no ConfigMap. */
  namespaceDefaults: boolean
  onError: (error: unknown, message: string) => void
} & Pick<GarbageCollectorOptions, 'owners'>

/** Runs the controllers inside the server, which act on durable writes. */
export class Lifecycle {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #garbageCollector: GarbageCollector
  readonly #namespaces: NamespaceController
  readonly #crds: CrdController
  readonly #clusterRoles: ClusterRoleController
  readonly #namespaceDefaults: NamespaceDefaultsController | undefined
  readonly #tokenSecrets: TokenSecretController
  readonly #resourceQuotas: ResourceQuotaController
  readonly #kubernetesService: KubernetesServiceController
  readonly #onError: (error: unknown, message: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, registry: Registry, options: LifecycleOptions) {
    const { serviceAccounts, quotas, caCertificate, namespaceDefaults, owners, onError } = options
    this.#store = store
    this.#onError = onError
    this.#queue = new TaskQueue((error, key) => onError(error, `failed to reconcile ${key}; retrying`))
    this.#garbageCollector = new GarbageCollector(store, registry, this.#queue, { owners, onError })
    this.#namespaces = new NamespaceController(store, registry, this.#queue)
    this.#crds = new CrdController(store, registry, this.#queue)
    this.#clusterRoles = new ClusterRoleController(store, this.#queue)
    if (namespaceDefaults) this.#namespaceDefaults = new NamespaceDefaultsController(store, this.#queue, caCertificate)
    this.#tokenSecrets = new TokenSecretController(store, this.#queue, serviceAccounts, caCertificate)
    this.#resourceQuotas = new ResourceQuotaController(store, this.#queue, quotas)
    this.#kubernetesService = new KubernetesServiceController(store, registry, this.#queue, message =>
      onError(undefined, `failed to write the Service default/kubernetes, retrying when a Service changes: ${message}`),
    )
  }

  /** Resolves when the namespaces, roles and PriorityClasses that every cluster has are durable, and Leases after a crash. */
  async start(): Promise<void> {
    this.#store.onCommit((table, events) => {
      this.#garbageCollector.observe(table, events)
      this.#namespaces.observe(table, events)
      this.#crds.observe(table, events)
      this.#clusterRoles.observe(table, events)
      this.#namespaceDefaults?.observe(table, events)
      this.#tokenSecrets.observe(table, events)
      this.#kubernetesService.observe(table, events)
    })
    this.#namespaceDefaults?.start()
    const defaults = [this.#namespaces.start(), this.#clusterRoles.start(), ensurePriorityClasses(this.#store)]
    await Promise.all([...defaults, renewLeasesAfterCrash(this.#store)])
    this.#tokenSecrets.start()
    this.#resourceQuotas.start()
    this.#crds.start()
    this.#garbageCollector.start()
    this.#timer = setInterval(() => {
      expireEvents(this.#store).catch(error => this.#onError(error, 'failed to delete expired Events'))
    }, eventCleanupIntervalMs)
    this.#timer.unref()
  }

  /** Publishes the address of the server in the Service `default/kubernetes`; called when the server listens. */
  publishEndpoint(endpoint: ApiServerEndpoint): Promise<void> {
    return this.#kubernetesService.publish(endpoint)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#garbageCollector.stop()
    await this.#queue.stop()
  }
}
