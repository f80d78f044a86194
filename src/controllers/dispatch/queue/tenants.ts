import type { Tenant, TenantSpec } from '../../../api/index.ts'
import { type KubeObject, type LabelSelector, labelSelectorFromObject, matchesLabels } from '../../../kubernetes/object/index.ts'

/** Weight and limit of a tenant. */
export type TenantSettings = {
  /** Its share under contention, relative to other tenants. Default 1. */
  readonly weight: number
  /** Infinity: no limit. */
  readonly maxRunning: number
}

const defaultSettings: TenantSettings = { weight: 1, maxRunning: Infinity }

/** A namespace that two Tenants claim; it belongs to `owner`, the older one. */
export type TenantConflict = { readonly namespace: string; readonly owner: string }

/**
 * Maps namespaces to tenants: to the Tenant that names the namespace, else to the one whose selector matches it, else to a tenant of the
 * namespace's own name. Of several Tenants that claim a namespace the oldest owns it, so that a new Tenant cannot take it over.
 */
export class TenantIndex {
  readonly #settings = new Map<string, TenantSettings>()
  readonly #named = new Map<string, string>()
  readonly #selected = new Map<string, string>()
  readonly #conflicts = new Map<string, TenantConflict[]>()
  readonly #namespaces = new Map<string, string[]>()

  constructor(tenants: readonly Tenant[] = [], namespaces: readonly KubeObject<unknown>[] = []) {
    const oldestFirst = [...tenants].sort((a, b) => compareAge(a, b))
    for (const { metadata, spec } of oldestFirst) {
      this.#settings.set(metadata.name, { weight: spec.weight ?? 1, maxRunning: spec.limits?.maxRunning ?? Infinity })
      for (const namespace of spec.namespaces ?? []) this.#claim(this.#named, namespace, metadata.name)
    }
    for (const { metadata, spec } of oldestFirst) {
      const selector = selectorOf(spec)
      if (!selector) continue
      for (const { metadata: candidate } of namespaces) {
        if (this.#named.has(candidate.name) || !matchesLabels(selector, candidate.labels)) continue
        this.#claim(this.#selected, candidate.name, metadata.name)
      }
    }
    for (const { metadata } of namespaces) {
      const tenant = this.tenantOf(metadata.name)
      const others = this.#namespaces.get(tenant)
      if (others) others.push(metadata.name)
      else this.#namespaces.set(tenant, [metadata.name])
    }
  }

  tenantOf(namespace: string): string {
    return this.ownerOf(namespace) ?? namespace
  }

  /** The Tenant that the namespace belongs to. Unlike {@link tenantOf} never a Tenant that only has the name of the namespace. */
  ownerOf(namespace: string): string | undefined {
    return this.#named.get(namespace) ?? this.#selected.get(namespace)
  }

  settingsOf(tenant: string): TenantSettings {
    return this.#settings.get(tenant) ?? defaultSettings
  }

  /** Existing namespaces of the tenant. */
  namespacesOf(tenant: string): readonly string[] {
    return this.#namespaces.get(tenant) ?? []
  }

  /** Namespaces that this Tenant claims and another one owns. */
  conflictsOf(tenant: string): readonly TenantConflict[] {
    return this.#conflicts.get(tenant) ?? []
  }

  #claim(claims: Map<string, string>, namespace: string, tenant: string): void {
    const owner = claims.get(namespace)
    if (owner === undefined) claims.set(namespace, tenant)
    else if (owner !== tenant) this.#conflicts.set(tenant, [...(this.#conflicts.get(tenant) ?? []), { namespace, owner }])
  }
}

/** Undefined if there is no selector, or if it is invalid and therefore matches nothing ({@link selectorError}). */
function selectorOf(spec: TenantSpec): LabelSelector | undefined {
  return spec.namespaceSelector && !selectorError(spec) ? labelSelectorFromObject(spec.namespaceSelector) : undefined
}

/** The validation error of the selector; undefined if it is valid. */
export function selectorError({ namespaceSelector }: TenantSpec): string | undefined {
  if (!namespaceSelector) return undefined
  try {
    labelSelectorFromObject(namespaceSelector)
    return undefined
  } catch (error) {
    return `spec.namespaceSelector: ${(error as Error).message}`
  }
}

function compareAge({ metadata: a }: Tenant, { metadata: b }: Tenant): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp ? -1 : 1
  return a.name < b.name ? -1 : 1
}
