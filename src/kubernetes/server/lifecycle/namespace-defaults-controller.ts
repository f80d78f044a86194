import { randomUUID } from 'node:crypto'
import { isJsonObject, type KubeObject, rfc3339 } from '../../object/index.ts'
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

const accountName = 'default'
const rootCaName = 'kube-root-ca.crt'
const rootCaDescription =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.'

/**
 * Creates the objects that every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. They are written in the
 * commit that makes the namespace durable, recreated when they are deleted, and deleted with the namespace.
 */
export class NamespaceDefaultsController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #caCertificate: string
  readonly #namespaces: Table
  readonly #accounts: Table
  readonly #configMaps: Table

  constructor(store: Store, queue: TaskQueue, caCertificate: string) {
    this.#store = store
    this.#queue = queue
    this.#caCertificate = caCertificate
    this.#namespaces = store.table('namespaces')
    this.#accounts = store.table('serviceaccounts')
    this.#configMaps = store.table('configmaps')
  }

  start(): void {
    this.#namespaces.onCreate = ({ name }) => this.#ensure(name)
    for (const { name } of this.#namespaces.values()) this.#ensure(name)
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    if (table === this.#accounts) {
      for (const { type, entry } of events) if (type === 'DELETED' && entry.name === accountName) this.#ensure(entry.namespace)
    } else if (table === this.#configMaps) {
      for (const { type, entry } of events) if (type !== 'ADDED' && entry.name === rootCaName) this.#ensure(entry.namespace)
    }
  }

  #ensure(namespace: string): void {
    const done = this.#write(namespace)
    if (done.length === 0) return
    Promise.all(done).catch(() => {
      this.#queue.add(`defaults of namespace ${namespace}`, async () => void (await Promise.all(this.#write(namespace))))
    })
  }

  #write(namespace: string): Promise<StoredEntry>[] {
    const done: Promise<StoredEntry>[] = []
    const home = this.#store.head(this.#namespaces, namespace)
    if (!home || home.deleting) return done
    if (!this.#store.head(this.#accounts, `${namespace}/${accountName}`)) {
      done.push(this.#store.put(this.#accounts, undefined, this.#newObject('ServiceAccount', namespace, accountName)))
    }
    const head = this.#store.head(this.#configMaps, `${namespace}/${rootCaName}`)
    const data = { 'ca.crt': this.#caCertificate }
    const live = head && parseEntry(head)
    if (!live) {
      const configMap = this.#newObject('ConfigMap', namespace, rootCaName, { 'kubernetes.io/description': rootCaDescription })
      done.push(this.#store.put(this.#configMaps, undefined, { ...configMap, data }))
    } else if (!head?.deleting && !(isJsonObject(live.data) && live.data['ca.crt'] === data['ca.crt'])) {
      done.push(this.#store.put(this.#configMaps, head, { ...live, data }))
    }
    return done
  }

  #newObject(kind: string, namespace: string, name: string, annotations?: Record<string, string>): KubeObject {
    const metadata: KubeObject['metadata'] = {
      name,
      namespace,
      uid: randomUUID(),
      resourceVersion: '',
      creationTimestamp: rfc3339(this.#store.nowMs),
      ...(annotations && { annotations }),
    }
    return { apiVersion: 'v1', kind, metadata }
  }
}
