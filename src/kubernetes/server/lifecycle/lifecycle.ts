import type { ServiceAccountTokens } from '../auth/index.ts'
import type { Quotas } from '../quota/index.ts'
import type { Registry } from '../registry/index.ts'
import type { Store } from '../storage/index.ts'
import { ClusterRoles } from './cluster-roles.ts'
import { Definitions } from './definitions.ts'
import { expireEvents } from './expire-events.ts'
import { GarbageCollector } from './garbage-collector.ts'
import { NamespaceDefaults } from './namespace-defaults.ts'
import { Namespaces } from './namespaces.ts'
import { ensurePriorityClasses } from './priority-classes.ts'
import { QuotaStatuses } from './quota-statuses.ts'
import { TokenSecrets } from './token-secrets.ts'
import { WorkQueue } from './work-queue.ts'

const expireEveryMs = 60_000

export type LifecycleOptions = {
  serviceAccounts: ServiceAccountTokens
  quotas: Quotas
  /** PEM, for `kube-root-ca.crt` and the Secrets of service accounts. */
  caCertificate: string
  /** False: namespaces are not given a ServiceAccount and a ConfigMap. */
  namespaceDefaults: boolean
  onError: (error: unknown, what: string) => void
}

/** What the server does by itself, after writes are durable: owners, namespaces, definitions, roles, service accounts, quotas, old Events. */
export class Lifecycle {
  readonly #store: Store
  readonly #queue: WorkQueue
  readonly #collector: GarbageCollector
  readonly #namespaces: Namespaces
  readonly #definitions: Definitions
  readonly #roles: ClusterRoles
  readonly #defaults: NamespaceDefaults | undefined
  readonly #tokenSecrets: TokenSecrets
  readonly #quotaStatuses: QuotaStatuses
  readonly #onError: (error: unknown, what: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, registry: Registry, options: LifecycleOptions) {
    const { serviceAccounts, quotas, caCertificate, namespaceDefaults, onError } = options
    this.#store = store
    this.#onError = onError
    this.#queue = new WorkQueue((error, key) => onError(error, `cannot finish ${key} yet`))
    this.#collector = new GarbageCollector(store, registry, this.#queue)
    this.#namespaces = new Namespaces(store, registry, this.#queue)
    this.#definitions = new Definitions(store, registry, this.#queue)
    this.#roles = new ClusterRoles(store, this.#queue)
    if (namespaceDefaults) this.#defaults = new NamespaceDefaults(store, this.#queue, caCertificate)
    this.#tokenSecrets = new TokenSecrets(store, this.#queue, serviceAccounts, caCertificate)
    this.#quotaStatuses = new QuotaStatuses(store, this.#queue, quotas)
  }

  async start(): Promise<void> {
    this.#store.onCommit((table, events) => {
      this.#collector.follow(table, events)
      this.#namespaces.follow(table, events)
      this.#definitions.follow(table, events)
      this.#roles.follow(table, events)
      this.#defaults?.follow(table, events)
      this.#tokenSecrets.follow(table, events)
    })
    this.#defaults?.start()
    await Promise.all([this.#namespaces.start(), this.#roles.start(), ensurePriorityClasses(this.#store)])
    this.#tokenSecrets.start()
    this.#quotaStatuses.start()
    this.#definitions.start()
    this.#collector.start()
    this.#timer = setInterval(() => {
      expireEvents(this.#store).catch(error => this.#onError(error, 'cannot remove old events'))
    }, expireEveryMs)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#queue.stop()
  }
}
