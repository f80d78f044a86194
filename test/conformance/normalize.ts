import { stringify } from 'yaml'
import { dropPaths, keepPaths } from './paths.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type JsonObject = { [key: string]: Json }

/** The paths of a body that are compared; default: all. */
export type PathFilter = { show?: string; hide?: string }

const dayMs = 86_400_000
const firstKeys = ['type', 'apiVersion', 'kind', 'metadata', 'name', 'namespace', 'generateName']
const uidPattern = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g

/**
 * Converts the bodies of one transcript to text that does not depend on the server or the run: random and counted values become
 * placeholders that preserve identity and order. `<uid a>` is the UID of the object a (`<uid a 2>` of the next object of that name), `<rv a
 * 3>` its third resourceVersion.
 */
export class Normalizer {
  readonly #uids = new Map<string, string>()
  readonly #revisions = new Map<string, string>()
  readonly #seen = new Map<string, number>()
  readonly #generatedNames = new Set<string>()
  #newest = 0
  #isCollection = false
  #isBookmark = false

  /** Registers a request: values that it contains are not replaced. */
  addRequest(text: string): void {
    for (const [uid] of text.matchAll(uidPattern)) if (!this.#uids.has(uid)) this.#uids.set(uid, uid)
    for (const [, prefix] of text.matchAll(/"?generateName"?: *"?([^\s",}]+)/g)) this.#generatedNames.add(prefix!)
  }

  /** Formats a JSON body as YAML with sorted keys. */
  body(value: unknown, choice: PathFilter): string {
    this.#isCollection = isCollection(value)
    this.#isBookmark = false
    let normal = sortCauses(this.#value(value as Json, [], this.#isCollection))
    if (choice.show) normal = keepPaths(normal, choice.show) as Json
    if (choice.hide) normal = dropPaths(normal, choice.hide) as Json
    return toYaml(normal)
  }

  /** Formats an event of a watch. */
  event(event: unknown, choice: PathFilter): string {
    const { type, object } = event as { type?: string; object?: Json }
    if (type === undefined || object === undefined) return `(no event)\n${this.body(event, {}).replace(/^/gm, '  ')}`
    this.#isBookmark = type === 'BOOKMARK'
    this.#isCollection = this.#isBookmark
    let normal = this.#value(object, [], true)
    if (choice.show && type !== 'ERROR') normal = keepPaths(normal, choice.show) as Json
    if (choice.hide) normal = dropPaths(normal, choice.hide) as Json
    return `${type}\n${toYaml(normal).replace(/^/gm, '  ')}`
  }

  text(value: string): string {
    let text = value
      .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>')
      .replace(uidPattern, uid => this.#uids.get(uid) ?? '<uid>')
      .replace(/(ResourceVersion in [a-z ]+[:(] ?|resource version: )(\d+)/gi, (_, before, revision) => before + this.#known(revision))
      .replace(/\bcurrent: \d+/g, 'current: <rv>')
      .replace(/\bhash=[0-9A-F]{16,}/g, 'hash=<hash>')
      .replace(/(too old resource version: \S+ )\(\d+\)/, '$1(<rv>)')
      .replace(/(\\?"resourceVersion\\?":\\?")\d+/g, '$1<rv>')
      .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, time => (isCurrent(time) ? '<time>' : time))
    for (const prefix of this.#generatedNames) {
      text = text.replace(new RegExp(`${RegExp.escape(prefix)}[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9])`, 'g'), `${prefix}<5>`)
    }
    return text
  }

  #value(value: Json, path: string[], quiet: boolean): Json {
    if (typeof value === 'string') return this.#string(value, path)
    if (Array.isArray(value)) return value.map((item, i) => this.#value(item, [...path, String(i)], quiet))
    if (typeof value !== 'object' || value === null) {
      return path.at(-1) === 'nodePort' || path.at(-1) === 'healthCheckNodePort' ? '<port>' : value
    }
    if (value.kind === 'Table' && 'columnDefinitions' in value) return this.#table(value, path)
    const result: JsonObject = {}
    // Objects before lists: the revision of a list is compared with those of its items.
    for (const key of Object.keys(value).sort(byKey).reverse()) {
      if (key === 'managedFields' && path.at(-1) === 'metadata') {
        if (!quiet) result[key] = managers(value[key]!)
      } else if (key === 'metadata') result[key] = this.#metadata(value[key]!, [...path, key], quiet)
      else result[key] = this.#value(value[key]!, [...path, key], quiet)
    }
    return result
  }

  /** Registers the identity of an object before anything that refers to it is formatted. */
  #metadata(metadata: Json, path: string[], quiet: boolean): Json {
    const { name, uid, resourceVersion } = (metadata ?? {}) as JsonObject
    if (typeof name === 'string' && typeof uid === 'string') {
      const label = this.text(name)
      if (!this.#uids.has(uid)) this.#uids.set(uid, this.#count('uid', label))
      if (typeof resourceVersion === 'string' && !this.#revisions.has(resourceVersion)) {
        const isNewer = Number(resourceVersion) > this.#newest
        if (isNewer) this.#newest = Number(resourceVersion)
        const counted = this.#count('rv', label, 1)
        this.#revisions.set(resourceVersion, isNewer ? counted : counted.replace('>', ', older>'))
      }
    }
    return this.#value(metadata, path, quiet)
  }

  #count(what: string, name: string, from = 2): string {
    const key = `${what} ${name}`
    const times = (this.#seen.get(key) ?? 0) + 1
    this.#seen.set(key, times)
    return `<${key}${times >= from ? ` ${times}` : ''}>`
  }

  #table({ kind, columnDefinitions, rows, ...rest }: JsonObject, path: string[]): Json {
    const columns = columnDefinitions as JsonObject[] | null | undefined
    return {
      ...(this.#value(rest, path, true) as JsonObject),
      kind: kind ?? null,
      columnDefinitions:
        columns?.map(
          ({ name, type, format, priority, description }) =>
            `${name} | ${type}${format ? `/${format}` : ''} | ${priority} | ${description}`,
        ) ?? null,
      rows: ((rows ?? []) as JsonObject[]).map(row => ({
        ...(this.#value({ ...row, cells: null }, [...path, 'rows'], true) as JsonObject),
        cells: (row.cells as Json[]).map(cell => {
          const isAge = typeof cell === 'string' && /^(\d+[smhdy])+$/.test(cell)
          return isAge ? '<age>' : this.#value(cell, [...path, 'cell'], true)
        }),
      })),
    }
  }

  #string(value: string, path: string[]): Json {
    const key = path.at(-1)
    if (key === 'resourceVersion' && path.at(-2) === 'metadata') return this.#revision(value, path.length === 2)
    if (key === 'continue' && value !== '') return '<continue>'
    if (key === 'storageVersionHash') return '<hash>'
    if ((key === 'clusterIP' || path.at(-2) === 'clusterIPs') && /^\d+\./.test(value)) return '<ip>'
    return this.text(value)
  }

  #known(revision: string): string {
    return this.#revisions.get(revision) ?? (Number(revision) >= this.#newest ? '<rv>' : revision)
  }

  #revision(value: string, isTop: boolean): string {
    if (value === '' || value === '0') return value
    // The revision of a list or bookmark changes with every write: only its order is compared.
    if (this.#isBookmark || (isTop && this.#isCollection)) return Number(value) >= this.#newest ? '<now>' : '<past>'
    return this.#revisions.get(value) ?? '<rv>'
  }
}

/** kube-apiserver visits the fields of a custom resource in random order, so the order of its errors is not compared. */
function sortCauses(status: Json): Json {
  if (typeof status !== 'object' || status === null || Array.isArray(status) || status.reason !== 'Invalid') return status
  const details = status.details as { causes?: { field?: string; message: string }[] } | undefined
  if (!details?.causes || typeof status.message !== 'string') return status
  const text = ({ field, message }: { field?: string; message: string }) => (field ? `${field}: ${message}` : message)
  const causes = details.causes.toSorted((a, b) => (text(a) < text(b) ? -1 : 1))
  const [, before, list] = /^(.*? is invalid: )\[(.*)\]$/s.exec(status.message) ?? []
  let rest = list ?? ''
  const named = [...new Set(causes.map(text))].filter(cause => {
    const isNamed = rest.includes(cause)
    rest = rest.replace(cause, '')
    return isNamed
  })
  const isAll = list !== undefined && /^[ ,]*$/.test(rest)
  return { ...status, details: { ...details, causes }, ...(isAll && { message: `${before}[${named.join(', ')}]` }) }
}

function managers(entries: Json): Json {
  // Kubernetes sorts them by time in seconds, so their order depends on when the test ran.
  const texts = (entries as JsonObject[]).map(({ manager, operation, apiVersion, subresource, fieldsV1 }) => {
    const of = subresource ? ` of ${subresource}` : ''
    return `${manager} ${operation} ${apiVersion}${of}: ${leaves((fieldsV1 ?? {}) as JsonObject, '').join(', ')}`
  })
  return texts.sort()
}

/** The owned paths of `fieldsV1`: `f:spec` is `.spec`, `k:{"name":"a"}` is `[name=a]`, `v:1` is `[=1]`. */
function leaves(fields: JsonObject, prefix: string): string[] {
  return Object.keys(fields)
    .sort()
    .flatMap(key => {
      if (key === '.') return [prefix]
      const path = prefix + segment(key)
      const below = fields[key] as JsonObject
      return Object.keys(below).length === 0 ? [path] : leaves(below, path)
    })
}

function segment(key: string): string {
  if (key.startsWith('f:')) return `.${key.slice(2)}`
  if (key.startsWith('k:')) {
    const keys = Object.entries(JSON.parse(key.slice(2)) as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1))
    return `[${keys.map(([name, value]) => `${name}=${value}`).join(',')}]`
  }
  return key.startsWith('v:') ? `[=${key.slice(2)}]` : `[${key}]`
}

function toYaml(value: Json): string {
  if (typeof value !== 'object' || value === null) return stringify(value).trimEnd()
  return stringify(value, {
    lineWidth: 0,
    sortMapEntries: (a, b) => byKey(String(a.key), String(b.key)),
    aliasDuplicateObjects: false,
  }).trimEnd()
}

function byKey(a: string, b: string): number {
  const x = firstKeys.indexOf(a)
  const y = firstKeys.indexOf(b)
  if (x >= 0 || y >= 0) return (x < 0 ? firstKeys.length : x) - (y < 0 ? firstKeys.length : y)
  return a < b ? -1 : a > b ? 1 : 0
}

function isCollection(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ('items' in value || 'rows' in value)
}

/** Whether a time is of this run, and not one that a case wrote. */
function isCurrent(time: string): boolean {
  return Math.abs(Date.parse(time) - Date.now()) < dayMs
}
