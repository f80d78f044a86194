import type { KubeObject } from '../../../object/index.ts'
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../../storage/index.ts'
import type { Attributes, User } from '../user.ts'
import { type PolicyRule, ruleAllows } from './policy-rule.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'

export type RoleRef = { readonly apiGroup?: string; readonly kind: string; readonly name: string }
export type Subject = { readonly kind: string; readonly apiGroup?: string; readonly name: string; readonly namespace?: string }

type Binding = { readonly name: string; readonly namespace: string; readonly roleRef: RoleRef; readonly subjects: readonly Subject[] }

/** A rule of a user, and the binding that grants it. */
type Grant = { readonly rule: PolicyRule; readonly binding: Binding; readonly subject: Subject }
type Grants = { readonly grants: readonly Grant[]; readonly errors: readonly string[] }

type UserGrants = { generation: number; readonly cluster: Grants; readonly byNamespace: Map<string, Grants> }

/** `reason` names the binding that allows the request, or the errors of the lookup. */
export type RbacDecision = { readonly allowed: boolean; readonly reason: string }

/** The limit of cached users and namespaces of users; beyond it the cache is cleared (invariant 10). */
const maxCached = 20_000

/**
 * Decides by the stored Roles, ClusterRoles and bindings. It observes the store's commits: a binding is in effect when its writer gets the
 * response. A decision reads the rules of one user only: bindings are indexed by subject, and the rules of a user are cached until an
 * object of the four kinds changes.
 */
export class Rbac {
  readonly #roles: Table
  readonly #clusterRoles: Table
  readonly #bindings: Table
  readonly #clusterBindings: Table
  readonly #clusterBySubject = new Map<string, Map<string, Binding>>()
  readonly #bySubject = new Map<string, Map<string, Map<string, Binding>>>()
  /** The parsed rules of stored roles; an entry is immutable. */
  readonly #rules = new WeakMap<StoredEntry, readonly PolicyRule[]>()
  #ofUser = new WeakMap<User, UserGrants>()
  #cachedCount = 0
  #generation = 0

  constructor(store: Store) {
    this.#roles = store.table(`roles.${rbacGroup}`)
    this.#clusterRoles = store.table(`clusterroles.${rbacGroup}`)
    this.#bindings = store.table(`rolebindings.${rbacGroup}`)
    this.#clusterBindings = store.table(`clusterrolebindings.${rbacGroup}`)
    for (const table of [this.#bindings, this.#clusterBindings]) for (const entry of table.values()) this.#index(table, undefined, entry)
    store.onCommit((table, events) => this.#observe(table, events))
  }

  /** Decides a request. */
  decide(attributes: Attributes): RbacDecision {
    const { user, namespace } = attributes
    const known = this.#grantsOf(user)
    const inCluster = findGrant(known.cluster, attributes)
    if (inCluster) return inCluster
    const local = namespace ? this.#inNamespace(user, known, namespace) : undefined
    const inNamespace = local && findGrant(local, attributes)
    if (inNamespace) return inNamespace
    return { allowed: false, reason: formatErrors([...known.cluster.errors, ...(local?.errors ?? [])]) }
  }

  /** All rules of a user in a namespace (empty: only cluster-wide rules); `error` lists bindings whose role does not exist. */
  rulesFor(user: User, namespace: string): { rules: PolicyRule[]; error: string } {
    const known = this.#grantsOf(user)
    const local = namespace ? this.#inNamespace(user, known, namespace) : undefined
    const grants = [...known.cluster.grants, ...(local?.grants ?? [])]
    return { rules: grants.map(grant => grant.rule), error: joinErrors([...known.cluster.errors, ...(local?.errors ?? [])]) }
  }

  /** The rules that a binding in `namespace` (empty: a ClusterRoleBinding) grants; undefined if the role does not exist. */
  rulesOf(roleRef: RoleRef, namespace: string): readonly PolicyRule[] | undefined {
    const isCluster = roleRef.kind === 'ClusterRole'
    const entry = isCluster ? this.#clusterRoles.get(roleRef.name) : this.#roles.get(`${namespace}/${roleRef.name}`)
    if (!entry) return undefined
    let rules = this.#rules.get(entry)
    if (!rules) {
      rules = rulesIn(parseEntry(entry))
      this.#rules.set(entry, rules)
    }
    return rules
  }

  #grantsOf(user: User): UserGrants {
    let known = this.#ofUser.get(user)
    if (known?.generation === this.#generation) return known
    known = { generation: this.#generation, cluster: this.#resolve(user, this.#clusterBySubject), byNamespace: new Map() }
    this.#countCached()
    this.#ofUser.set(user, known)
    return known
  }

  #inNamespace(user: User, known: UserGrants, namespace: string): Grants {
    const bySubject = this.#bySubject.get(namespace)
    // Requests for namespaces that do not exist must not fill the cache.
    if (!bySubject) return noGrants
    let local = known.byNamespace.get(namespace)
    if (local) return local
    local = this.#resolve(user, bySubject)
    this.#countCached()
    known.byNamespace.set(namespace, local)
    return local
  }

  #countCached(): void {
    if (++this.#cachedCount <= maxCached) return
    this.#cachedCount = 0
    this.#ofUser = new WeakMap()
  }

  #resolve(user: User, bySubject: ReadonlyMap<string, ReadonlyMap<string, Binding>> | undefined): Grants {
    const bindings = new Set<Binding>()
    if (bySubject) {
      for (const binding of bySubject.get(userKey(user.name))?.values() ?? []) bindings.add(binding)
      for (const group of user.groups) for (const binding of bySubject.get(groupKey(group))?.values() ?? []) bindings.add(binding)
    }
    const grants: Grant[] = []
    const errors: string[] = []
    for (const binding of bindings) {
      const { roleRef, namespace } = binding
      const rules = this.rulesOf(roleRef, namespace)
      const subject = binding.subjects.find(candidate => isSubject(user, keyOf(candidate, namespace)))
      if (!rules) errors.push(`${roleRef.kind.toLowerCase()}.${rbacGroup} ${JSON.stringify(roleRef.name)} not found`)
      else if (subject) for (const rule of rules) grants.push({ rule, binding, subject })
    }
    return { grants, errors }
  }

  #observe(table: Table, events: readonly StoredEvent[]): void {
    const isBinding = table === this.#bindings || table === this.#clusterBindings
    if (!isBinding && table !== this.#roles && table !== this.#clusterRoles) return
    this.#generation++
    if (!isBinding) return
    for (const { type, entry, before } of events) this.#index(table, before, type === 'DELETED' ? undefined : entry)
  }

  #index(table: Table, before: StoredEntry | undefined, after: StoredEntry | undefined): void {
    const namespace = (before ?? after)?.namespace ?? ''
    if (before) {
      const bySubject = namespace ? this.#bySubject.get(namespace) : this.#clusterBySubject
      for (const key of keysOf(parseBinding(parseEntry(before)))) {
        const bindings = bySubject?.get(key)
        bindings?.delete(before.name)
        if (bindings?.size === 0) bySubject?.delete(key)
      }
      if (namespace && bySubject?.size === 0) this.#bySubject.delete(namespace)
    }
    if (!after) return
    const binding = parseBinding(parseEntry(after))
    let bySubject = table === this.#clusterBindings ? this.#clusterBySubject : this.#bySubject.get(namespace)
    if (!bySubject) {
      bySubject = new Map()
      this.#bySubject.set(namespace, bySubject)
    }
    for (const key of keysOf(binding)) {
      const bindings = bySubject.get(key)
      if (bindings) bindings.set(binding.name, binding)
      else bySubject.set(key, new Map([[binding.name, binding]]))
    }
  }
}

const noGrants: Grants = { grants: [], errors: [] }

function findGrant({ grants }: Grants, attributes: Attributes): RbacDecision | undefined {
  for (const grant of grants) if (ruleAllows(grant.rule, attributes)) return new Allowed(grant)
  return undefined
}

/** Formats the reason only when it is read. */
class Allowed implements RbacDecision {
  readonly allowed = true
  readonly #grant: Grant

  constructor(grant: Grant) {
    this.#grant = grant
  }

  get reason(): string {
    const { binding, subject } = this.#grant
    const { name, namespace, roleRef } = binding
    const what = namespace ? `RoleBinding ${JSON.stringify(`${name}/${namespace}`)}` : `ClusterRoleBinding ${JSON.stringify(name)}`
    const isAccount = subject.kind === 'ServiceAccount'
    const whom = JSON.stringify(isAccount ? `${subject.name}/${subject.namespace || namespace}` : subject.name)
    return `RBAC: allowed by ${what} of ${roleRef.kind} ${JSON.stringify(roleRef.name)} to ${subject.kind} ${whom}`
  }
}

const userKey = (name: string) => `u:${name}`
const groupKey = (name: string) => `g:${name}`

function keyOf({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  switch (kind) {
    case 'User':
      return userKey(name)
    case 'Group':
      return groupKey(name)
    case 'ServiceAccount': {
      const within = namespace || bindingNamespace
      return within ? userKey(`system:serviceaccount:${within}:${name}`) : undefined
    }
    default:
      return undefined
  }
}

function isSubject(user: User, key: string | undefined): boolean {
  return key !== undefined && (key.startsWith('u:') ? key === userKey(user.name) : user.groups.includes(key.slice(2)))
}

function keysOf({ subjects, namespace }: Binding): Set<string> {
  const keys = new Set<string>()
  for (const subject of subjects) {
    const key = keyOf(subject, namespace)
    if (key !== undefined) keys.add(key)
  }
  return keys
}

function parseBinding({ metadata, roleRef, subjects }: KubeObject): Binding {
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    roleRef: roleRef as RoleRef,
    subjects: (subjects ?? []) as Subject[],
  }
}

/** The rules of a Role or ClusterRole; empty for an aggregated ClusterRole without rules yet. */
export function rulesIn({ rules }: KubeObject): readonly PolicyRule[] {
  return Array.isArray(rules) ? (rules as PolicyRule[]) : []
}

function formatErrors(errors: readonly string[]): string {
  return errors.length > 0 ? `RBAC: ${joinErrors(errors)}` : ''
}

/** Joins errors as Kubernetes does. */
function joinErrors(errors: readonly string[]): string {
  const distinct = [...new Set(errors)]
  return distinct.length > 1 ? `[${distinct.join(', ')}]` : (distinct[0] ?? '')
}
