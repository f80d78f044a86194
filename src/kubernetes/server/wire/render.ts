import type { KubeObject } from '../../object/index.ts'
import { yaml } from '../../util/index.ts'
import type { Kind } from '../registry/index.ts'
import { type StoredEntry, type StoredEvent, stringifyAsciiJson } from '../storage/index.ts'
import type { Representation } from './representation.ts'

/** The JSON of an entry at the version of `kind`. */
export function wireText(kind: Kind, entry: StoredEntry): string {
  return kind.fromStorage ? kind.fromStorage(entry.text, entry.revision) : entry.text
}

/** One object in the negotiated representation. */
export function renderEntry(kind: Kind, entry: StoredEntry, as: Representation, nowMs: number): string {
  return finish(entryJson(kind, entry, as, nowMs), as)
}

function entryJson(kind: Kind, entry: StoredEntry, as: Representation, nowMs: number): string {
  switch (as.form) {
    case 'object':
      return wireText(kind, entry)
    case 'partial':
      return partialText(entry, as)
    case 'table':
      return tableHead(kind, String(entry.revision), true, as) + rowText(kind, entry, as, nowMs) + tableEnd
  }
}

/** A longer text stays JSON, which is valid YAML: writing 1 MB of YAML takes a second. */
const maxYamlLength = 32 * 1024

/** Converts the finished JSON to YAML if the client asked for it; few do. */
export function finish(json: string, as: Representation): string {
  return as.syntax === 'json' || json.length > maxYamlLength
    ? json
    : yaml().stringify(JSON.parse(json), { aliasDuplicateObjects: false, lineWidth: 0 })
}

export type ListMeta = { resourceVersion: string; continue?: string; remainingItemCount?: number; shardInfo?: { selector: string } }

/** The text before and after the items of a list; the items are streamed. */
export function listFrame(kind: Kind, as: Representation, meta: ListMeta): { head: string; end: string } {
  switch (as.form) {
    case 'object':
      return {
        // Lists of custom resources always have `continue`, as in Kubernetes.
        head: `{"kind":"${kind.listKind}","apiVersion":"${kind.apiVersion}","metadata":${JSON.stringify(kind.isCustom ? { continue: '', ...meta } : meta)},"items":[`,
        end: ']}',
      }
    case 'partial':
      return {
        head: `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/${as.version}","metadata":${JSON.stringify(meta)},"items":[`,
        end: ']}',
      }
    case 'table':
      return {
        head: `{"kind":"Table","apiVersion":"meta.k8s.io/${as.version}","metadata":${JSON.stringify(meta)},"columnDefinitions":${columnsText(kind)},"rows":[`,
        end: ']}',
      }
  }
}

export function listItem(kind: Kind, entry: StoredEntry, as: Representation, nowMs: number): string {
  switch (as.form) {
    case 'object':
      return kind.isCustom ? wireText(kind, entry) : withoutType(kind, wireText(kind, entry))
    case 'partial':
      return partialText(entry, as)
    case 'table':
      return rowText(kind, entry, as, nowMs)
  }
}

// Every stored object begins with these two fields; Kubernetes omits them in list items of built-in kinds.
function withoutType({ apiVersion, kind }: Kind, text: string): string {
  return `{${text.slice('{"apiVersion":"","kind":"",'.length + apiVersion.length + kind.length)}`
}

export type SentType = 'ADDED' | 'MODIFIED' | 'DELETED'

/**
 * A watch event as a line, rendered once per media type and shared by all watchers.
 * @param isFirst in a Table, only the first event of a watch has the column definitions.
 */
export function renderEvent(kind: Kind, event: StoredEvent, type: SentType, as: Representation, isFirst: boolean, nowMs: number): string {
  // An object that leaves a selection is sent in its last version inside it, at the revision of the change.
  const isLeaving = type === 'DELETED' && event.type !== 'DELETED'
  const key = `${type}${isLeaving ? '-' : ''}${isFirst && as.form === 'table' ? '+' : ''}${kind.version}${kind.group}${as.key}`
  let line = event.encoded?.get(key)
  if (line === undefined) {
    const entry = isLeaving ? atRevision(event.before!, event.revision) : event.entry
    line = eventLine(type, eventObject(kind, entry, as, isFirst, nowMs), as)
    event.encoded ??= new Map()
    event.encoded.set(key, line)
  }
  return line
}

/** The ADDED line of an object that existed before the watch. */
export function renderInitial(kind: Kind, entry: StoredEntry, as: Representation, isFirst: boolean, nowMs: number): string {
  return eventLine('ADDED', eventObject(kind, entry, as, isFirst, nowMs), as)
}

export function renderBookmark(kind: Kind, revision: number, as: Representation, isInitialEnd: boolean): string {
  const annotations = isInitialEnd ? ',"annotations":{"k8s.io/initial-events-end":"true"}' : ''
  const metadata = `{"resourceVersion":"${revision}"${annotations}}`
  switch (as.form) {
    case 'object':
      return eventLine('BOOKMARK', `{"kind":"${kind.kind}","apiVersion":"${kind.apiVersion}","metadata":${metadata}}`, as)
    case 'partial':
      return eventLine('BOOKMARK', `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${as.version}","metadata":${metadata}}`, as)
    case 'table': {
      const row = `{"cells":[],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/${as.version}","metadata":${metadata}}}`
      return eventLine('BOOKMARK', tableHead(kind, String(revision), false, as) + row + tableEnd, as)
    }
  }
}

export function eventLine(type: string, object: string, as: Representation): string {
  const line = `{"type":"${type}","object":${object}}\n`
  return as.syntax === 'json' ? line : `---\n${finish(line, as)}`
}

function eventObject(kind: Kind, entry: StoredEntry, as: Representation, isFirst: boolean, nowMs: number): string {
  if (as.form === 'table') return tableHead(kind, String(entry.revision), isFirst, as) + rowText(kind, entry, as, nowMs) + tableEnd
  return entryJson(kind, entry, as, nowMs)
}

function atRevision(entry: StoredEntry, revision: number): StoredEntry {
  const object = JSON.parse(entry.text) as KubeObject
  object.metadata.resourceVersion = String(revision)
  return { ...entry, revision, text: stringifyAsciiJson(object) }
}

function partialText(entry: StoredEntry, { version }: Representation): string {
  const { metadata } = JSON.parse(entry.text) as KubeObject
  return stringifyAsciiJson({ kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata })
}

const tableEnd = ']}'

function tableHead(kind: Kind, revision: string, withColumns: boolean, { version }: Representation): string {
  const columns = withColumns ? columnsText(kind) : 'null'
  return `{"kind":"Table","apiVersion":"meta.k8s.io/${version}","metadata":{"resourceVersion":"${revision}"},"columnDefinitions":${columns},"rows":[`
}

const columnTexts = new WeakMap<Kind, string>()

function columnsText(kind: Kind): string {
  let text = columnTexts.get(kind)
  if (text === undefined) {
    text = stringifyAsciiJson(
      kind.columns.map(({ name, type, format, description, priority }) => ({ name, type, format: format ?? '', description, priority })),
    )
    columnTexts.set(kind, text)
  }
  return text
}

function rowText(kind: Kind, entry: StoredEntry, as: Representation, nowMs: number): string {
  // The columns of built-in kinds read the stored version.
  const object = JSON.parse(kind.isCustom ? wireText(kind, entry) : entry.text) as KubeObject
  const cells = kind.columns.map(column => column.read(object, nowMs) ?? null)
  switch (as.include) {
    case 'None':
      return stringifyAsciiJson({ cells, object: null })
    case 'Metadata':
      return stringifyAsciiJson({
        cells,
        object: { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${as.version}`, metadata: object.metadata },
      })
    case 'Object':
      return `{"cells":${stringifyAsciiJson(cells)},"object":${wireText(kind, entry)}}`
  }
}
