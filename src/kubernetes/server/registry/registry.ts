import { equalJson, type KubeObject, parseApiVersion, type StructuralSchema } from '../../object/index.ts'
import { parseEntry, type Store, type StoredEvent } from '../storage/index.ts'
import { builtInKinds } from './built-in-kinds.ts'
import { compareVersions } from './compare-versions.ts'
import {
  type Crd,
  type CrdNames,
  crdStatus,
  ensureStorageVersion,
  isServed,
  kindsOfCrd,
  type NameConflict,
  storageSchemaOf,
} from './crd/index.ts'
import type { Kind } from './kind.ts'
import type { ObjectReader } from './object-reader.ts'
import type { Strategy } from './strategy.ts'

const crdTableName = 'customresourcedefinitions.apiextensions.k8s.io'

/**
 * The kinds that are served. Custom kinds change in the commit that makes their definition durable, before its writer gets the response.
 */
export class Registry {
  readonly #groups = new Map<string, Map<string, Map<string, Kind>>>()
  readonly #customByCrd = new Map<string, Kind[]>()
  readonly #builtInTables = new Set<string>()
  /** The storage schema of each definition, and the revision from which it applies. */
  readonly #storage = new Map<string, { schema: StructuralSchema; since: number }>()
  readonly #store: Store
  readonly #establish: ((crd: KubeObject) => string | undefined) | undefined
  #generation = 0

  /** @param establish why a definition with accepted names is not established yet; undefined: it is. */
  constructor(store: Store, establish?: (crd: KubeObject) => string | undefined) {
    this.#store = store
    this.#establish = establish
    for (const kind of builtInKinds(objectReader(store))) {
      this.#add(kind.kind === 'CustomResourceDefinition' ? this.#withStatus(kind) : kind)
      this.#builtInTables.add(kind.storageName)
    }
    const crds = store.table(crdTableName)
    for (const entry of crds.values()) this.#defineCrd(parseEntry(entry) as Crd, entry.revision)
    store.onCommit((table, events) => {
      if (table === crds) this.#observe(events)
    })
  }

  /** Increases with every change, so that derived values can be cached. */
  get generation(): number {
    return this.#generation
  }

  find(group: string, version: string, plural: string): Kind | undefined {
    return this.#groups.get(group)?.get(version)?.get(plural)
  }

  /** Kinds by group, version and plural; versions in order of preference. */
  get groups(): ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<string, Kind>>> {
    return this.#groups
  }

  *kinds(): Generator<Kind> {
    for (const versions of this.#groups.values()) for (const kinds of versions.values()) yield* kinds.values()
  }

  /** One kind for each stored resource, for controllers that visit every object. */
  *storedKinds(): Generator<Kind> {
    const seen = new Set<string>()
    for (const kind of this.kinds()) {
      if ((kind.fromStorage && !kind.isCustom) || kind.isVirtual) continue
      if (seen.has(kind.storageName)) continue
      seen.add(kind.storageName)
      yield kind
    }
  }

  /**
   * True for the tables of built-in kinds. A definition with the name of a built-in kind is never accepted and does not affect its objects.
   */
  isBuiltIn(storageName: string): boolean {
    return this.#builtInTables.has(storageName)
  }

  /** The kind of an owner reference. */
  findByKind(apiVersion: string, kind: string): Kind | undefined {
    const { group, version } = parseApiVersion(apiVersion)
    for (const found of this.#groups.get(group)?.get(version)?.values() ?? []) if (found.kind === kind) return found
    return undefined
  }

  #observe(events: readonly StoredEvent[]): void {
    for (const { type, entry } of events) {
      const crd = parseEntry(entry) as Crd
      if (type === 'DELETED') {
        this.#remove(crd.metadata.name)
        this.#storage.delete(crd.metadata.name)
      } else this.#defineCrd(crd, this.#store.newestRevision)
    }
  }

  /** @param revision objects up to this revision may have been written with another schema. */
  #defineCrd(crd: Crd, revision: number): void {
    this.#remove(crd.metadata.name)
    // Regardless of its status: a user who may write the status must not replace a built-in kind by one without validation.
    if (!isServed(crd) || this.isBuiltIn(crd.metadata.name)) return
    const kinds = kindsOfCrd(crd, this.#storedSince(crd, revision))
    this.#customByCrd.set(crd.metadata.name, kinds)
    for (const kind of kinds) this.#add(kind)
  }

  #storedSince(crd: Crd, revision: number): number {
    const { name } = crd.metadata
    const schema = storageSchemaOf(crd)
    const entry = this.#storage.get(name)
    if (entry && equalJson(entry.schema, schema)) return entry.since
    this.#storage.set(name, { schema, since: revision })
    return revision
  }

  #remove(crdName: string): void {
    for (const kind of this.#customByCrd.get(crdName) ?? []) {
      const versions = this.#groups.get(kind.group)
      const kinds = versions?.get(kind.version)
      kinds?.delete(kind.plural)
      if (kinds?.size === 0) versions?.delete(kind.version)
      if (versions?.size === 0) this.#groups.delete(kind.group)
    }
    this.#customByCrd.delete(crdName)
    this.#generation++
  }

  #add(kind: Kind): void {
    this.#generation++
    let versions = this.#groups.get(kind.group)
    if (!versions) {
      versions = new Map()
      this.#groups.set(kind.group, versions)
    }
    let kinds = versions.get(kind.version)
    if (!kinds) {
      kinds = new Map()
      versions.set(kind.version, kinds)
      const ordered = [...versions].sort(([a], [b]) => compareVersions(a, b))
      versions.clear()
      for (const [version, ofVersion] of ordered) versions.set(version, ofVersion)
    }
    kinds.set(kind.plural, kind)
    const fields = kind.selectableFields
    const isStored = kind.isCustom ? !kind.toStorage : !kind.fromStorage
    if (!isStored) return
    const read = fields.length > 0 ? (object: KubeObject) => fields.map(field => field.read(object)) : undefined
    this.#store.table(kind.storageName).setFields(
      fields.map(field => field.field),
      read,
    )
  }

  // Only the registry knows whether the names are free.
  #withStatus(kind: Kind): Kind {
    const strategy: Strategy = {
      ...kind.strategy,
      prepareForStatusUpdate: ensureStorageVersion,
      prepareForWrite: (object, oldObject) => {
        kind.strategy.prepareForWrite?.(object, oldObject)
        const crd = object as Crd
        if (!crd.spec?.names || !Array.isArray(crd.spec.versions)) return
        object.status = crdStatus(crd, oldObject as Crd | undefined, this.#nameConflict(crd), this.#store.nowMs, this.#establish)
      },
    }
    return { ...kind, strategy }
  }

  /** The names of `crd` that other kinds use, with the condition for the last of them. */
  #nameConflict(crd: Crd): NameConflict | undefined {
    const { group, names } = crd.spec
    const resources = new Set<string>()
    const kinds = new Set<string>()
    for (const versions of this.#groups.get(group)?.values() ?? []) {
      for (const other of versions.values()) {
        if (other.plural === names.plural && other.isCustom) continue
        for (const name of [other.plural, other.singular, ...other.shortNames]) resources.add(name)
        for (const name of [other.kind, other.listKind]) kinds.add(name)
      }
    }
    let conflict: NameConflict | undefined
    const look = (field: keyof CrdNames, reason: string, desired: readonly (string | undefined)[], used: ReadonlySet<string>) => {
      const found = desired.find(name => name !== undefined && used.has(name))
      if (found === undefined) return
      conflict = { reason, message: `${JSON.stringify(found)} is already in use`, fields: [...(conflict?.fields ?? []), field] }
    }
    look('plural', 'PluralConflict', [names.plural], resources)
    look('singular', 'SingularConflict', [names.singular], resources)
    look('shortNames', 'ShortNamesConflict', names.shortNames ?? [], resources)
    look('kind', 'KindConflict', [names.kind], kinds)
    look('listKind', 'ListKindConflict', [names.listKind], kinds)
    return conflict
  }
}

function objectReader(store: Store): ObjectReader {
  return {
    get(storageName, key) {
      const entry = store.head(store.table(storageName), key)
      return entry && parseEntry(entry)
    },
    *all(storageName) {
      for (const entry of store.heads(store.table(storageName))) yield parseEntry(entry)
    },
    *inNamespace(storageName, namespace) {
      for (const entry of store.table(storageName).inNamespace(namespace)) yield parseEntry(entry)
    },
  }
}
