import { randomUUID } from 'node:crypto'
import { equalJson, type KubeObject, rfc3339 } from '../../object/index.ts'
import {
  aggregateRules,
  aggregationSelectors,
  autoUpdateAnnotation,
  type BootstrapClusterRole,
  bootstrapClusterRoleBindings,
  bootstrapClusterRoles,
  bootstrapLabels,
  rbacGroup,
  rulesIn,
  type Subject,
  uncoveredRules,
} from '../auth/index.ts'
import { mutate } from '../rest/index.ts'
import { type Entry, parseEntry, type Store, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

const apiVersion = `${rbacGroup}/v1`

/**
 * The ClusterRoles and bindings that are always there, and the rules of aggregated ClusterRoles. At start, what Kubernetes'
 * bootstrap policy has and is missing here is added, and nothing is taken away; `autoupdate: "false"` keeps an object as it is.
 */
export class ClusterRoleController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #roles: Table
  readonly #bindings: Table
  /** Stored roles as they were read: a version of a role never changes. */
  readonly #parsed = new WeakMap<Entry, KubeObject>()

  constructor(store: Store, queue: TaskQueue) {
    this.#store = store
    this.#queue = queue
    this.#roles = store.table(`clusterroles.${rbacGroup}`)
    this.#bindings = store.table(`clusterrolebindings.${rbacGroup}`)
  }

  /** Ends when the roles are there, which is one commit on a new server and none later on. */
  async start(): Promise<void> {
    const { nowMs } = this.#store
    const roles = new Map(this.#all().map(role => [role.metadata.name, role]))
    for (const wanted of bootstrapClusterRoles) roles.set(wanted.name, reconcileRole(roles.get(wanted.name), wanted, nowMs))
    const sorted = aggregateAll([...roles.values()].sort(byName))
    const done: Promise<unknown>[] = []
    for (const role of sorted) {
      const before = this.#roles.get(role.metadata.name)
      if (!before || role !== this.#parse(before)) done.push(this.#store.put(this.#roles, before, role))
    }
    for (const { name, subjects } of bootstrapClusterRoleBindings) done.push(...this.#reconcileBinding(name, subjects))
    await Promise.all(done)
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    if (table === this.#roles && events.length > 0) this.#queue.add('aggregated ClusterRoles', () => this.#aggregate())
  }

  async #aggregate(): Promise<void> {
    const roles = this.#all()
    const done: Promise<unknown>[] = []
    for (const role of roles) {
      if (!aggregationSelectors(role)) continue
      if (withRules(role, aggregateRules(role, roles)) === role) continue
      done.push(
        mutate(this.#store, this.#roles, role.metadata.name, head => {
          if (!head) return { result: undefined }
          const live = parseEntry(head)
          const next = withRules(live, aggregateRules(live, roles))
          return next === live ? { result: undefined } : { put: next }
        }),
      )
    }
    await Promise.all(done)
  }

  #all(): KubeObject[] {
    return this.#roles.snapshot().map(entry => this.#parse(entry))
  }

  #parse(entry: Entry): KubeObject {
    let role = this.#parsed.get(entry)
    if (!role) {
      role = parseEntry(entry)
      this.#parsed.set(entry, role)
    }
    return role
  }

  #reconcileBinding(name: string, wanted: readonly Subject[]): Promise<unknown>[] {
    const entry = this.#bindings.get(name)
    const roleRef = { apiGroup: rbacGroup, kind: 'ClusterRole', name }
    const live = entry && parseEntry(entry)
    if (live?.metadata.annotations?.[autoUpdateAnnotation] === 'false') return []
    const { nowMs } = this.#store
    const fresh = (): KubeObject => ({ ...newObject('ClusterRoleBinding', name, {}, nowMs), roleRef, subjects: [...wanted] })
    if (!entry || !live) return [this.#store.put(this.#bindings, undefined, fresh())]
    // What a binding refers to cannot be changed, only made anew.
    if (!equalJson(live.roleRef, roleRef)) {
      const removed = this.#store.remove(this.#bindings, entry, live)
      return [removed, this.#store.put(this.#bindings, undefined, fresh())]
    }
    const subjects = (live.subjects ?? []) as Subject[]
    const missing = wanted.filter(subject => !subjects.some(known => equalJson(known, subject)))
    const metadata = withBootstrapMetadata(live.metadata, {})
    if (missing.length === 0 && metadata === live.metadata) return []
    return [this.#store.put(this.#bindings, entry, { ...live, metadata, subjects: [...subjects, ...missing] })]
  }
}

/** The roles with the rules of the aggregated ones among them, which may be aggregated from each other. */
function aggregateAll(roles: readonly KubeObject[]): readonly KubeObject[] {
  let last = roles
  // Rules only become more, so this ends; a chain longer than this is finished by what follows the commit.
  for (let round = 0; round < 10; round++) {
    const all = last
    const next = all.map(role => (aggregationSelectors(role) ? withRules(role, aggregateRules(role, all)) : role))
    if (next.every((role, i) => role === all[i])) break
    last = next
  }
  return last
}

/** `live` as it should be: itself when nothing is missing. */
function reconcileRole(live: KubeObject | undefined, wanted: BootstrapClusterRole, nowMs: number): KubeObject {
  const { name, labels = {}, rules = [], aggregationRule } = wanted
  if (!live) {
    const object = newObject('ClusterRole', name, labels, nowMs)
    return aggregationRule ? { ...object, aggregationRule, rules: [] } : { ...object, rules: [...rules] }
  }
  if (live.metadata.annotations?.[autoUpdateAnnotation] === 'false') return live
  const metadata = withBootstrapMetadata(live.metadata, labels)
  const missing = uncoveredRules(rulesIn(live), rules)
  const selectors = aggregationSelectors(live) ?? []
  const added = (aggregationRule?.clusterRoleSelectors ?? []).filter(selector => !selectors.some(known => equalJson(known, selector)))
  if (metadata === live.metadata && missing.length === 0 && added.length === 0) return live
  return {
    ...live,
    metadata,
    ...(added.length > 0 && { aggregationRule: { clusterRoleSelectors: [...selectors, ...added] } }),
    ...(missing.length > 0 && { rules: [...rulesIn(live), ...missing] }),
  }
}

function newObject(kind: string, name: string, labels: Readonly<Record<string, string>>, nowMs: number): KubeObject {
  const metadata = { name, uid: randomUUID(), resourceVersion: '', creationTimestamp: rfc3339(nowMs) }
  return { apiVersion, kind, metadata: withBootstrapMetadata(metadata, labels) }
}

function withBootstrapMetadata(metadata: KubeObject['metadata'], more: Readonly<Record<string, string>>): KubeObject['metadata'] {
  const labels = { ...metadata.labels, ...bootstrapLabels, ...more }
  const annotations = { [autoUpdateAnnotation]: 'true', ...metadata.annotations }
  if (equalJson(labels, metadata.labels ?? {}) && equalJson(annotations, metadata.annotations ?? {})) return metadata
  return { ...metadata, labels, annotations }
}

function withRules(role: KubeObject, rules: ReturnType<typeof aggregateRules>): KubeObject {
  return equalJson(rulesIn(role), rules) ? role : { ...role, rules }
}

const byName = (a: KubeObject, b: KubeObject) => (a.metadata.name < b.metadata.name ? -1 : 1)
