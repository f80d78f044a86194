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
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

const apiVersion = `${rbacGroup}/v1`

/**
 * Keeps the bootstrap ClusterRoles and bindings, and the rules of aggregated ClusterRoles. At start, missing parts of Kubernetes' bootstrap
 * policy are added and nothing is removed. An object with the annotation `autoupdate: "false"` is not changed.
 */
export class ClusterRoleController {
  readonly #store: Store
  readonly #queue: TaskQueue
  readonly #roles: Table
  readonly #bindings: Table
  /** Parsed roles; a stored entry is immutable. */
  readonly #parsed = new WeakMap<StoredEntry, KubeObject>()

  constructor(store: Store, queue: TaskQueue) {
    this.#store = store
    this.#queue = queue
    this.#roles = store.table(`clusterroles.${rbacGroup}`)
    this.#bindings = store.table(`clusterrolebindings.${rbacGroup}`)
  }

  /** Resolves when the roles are durable: one commit on a new server, none afterwards. */
  async start(): Promise<void> {
    const { nowMs } = this.#store
    const roles = new Map(this.#all().map(role => [role.metadata.name, role]))
    for (const desired of bootstrapClusterRoles) roles.set(desired.name, reconcileRole(roles.get(desired.name), desired, nowMs))
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

  #parse(entry: StoredEntry): KubeObject {
    let role = this.#parsed.get(entry)
    if (!role) {
      role = parseEntry(entry)
      this.#parsed.set(entry, role)
    }
    return role
  }

  #reconcileBinding(name: string, desired: readonly Subject[]): Promise<unknown>[] {
    const entry = this.#bindings.get(name)
    const roleRef = { apiGroup: rbacGroup, kind: 'ClusterRole', name }
    const live = entry && parseEntry(entry)
    if (live?.metadata.annotations?.[autoUpdateAnnotation] === 'false') return []
    const { nowMs } = this.#store
    const fresh = (): KubeObject => ({ ...newObject('ClusterRoleBinding', name, {}, nowMs), roleRef, subjects: [...desired] })
    if (!entry || !live) return [this.#store.put(this.#bindings, undefined, fresh())]
    // The roleRef of a binding is immutable, so the binding is recreated.
    if (!equalJson(live.roleRef, roleRef)) {
      const removed = this.#store.remove(this.#bindings, entry, live)
      return [removed, this.#store.put(this.#bindings, undefined, fresh())]
    }
    const subjects = (live.subjects ?? []) as Subject[]
    const missing = desired.filter(subject => !subjects.some(known => equalJson(known, subject)))
    const metadata = withBootstrapMetadata(live.metadata, {})
    if (missing.length === 0 && metadata === live.metadata) return []
    return [this.#store.put(this.#bindings, entry, { ...live, metadata, subjects: [...subjects, ...missing] })]
  }
}

/** The roles with the rules of aggregated roles, which may include other aggregated roles. */
function aggregateAll(roles: readonly KubeObject[]): readonly KubeObject[] {
  let last = roles
  // Rules are only added, so this terminates; a longer chain is completed by the reconciles after the commit.
  for (let round = 0; round < 10; round++) {
    const all = last
    const next = all.map(role => (aggregationSelectors(role) ? withRules(role, aggregateRules(role, all)) : role))
    if (next.every((role, i) => role === all[i])) break
    last = next
  }
  return last
}

/** Returns `live` with the missing parts of `wanted`; `live` itself if nothing is missing. */
function reconcileRole(live: KubeObject | undefined, desired: BootstrapClusterRole, nowMs: number): KubeObject {
  const { name, labels = {}, rules = [], aggregationRule } = desired
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
