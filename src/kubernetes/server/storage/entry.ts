import { type KubeObject, shardHashHigh } from '../../object/index.ts'

/**
 * One version of one object. Entries are immutable: a write creates a new one, so lists, watches and paged snapshots share them.
 * `text` is the whole object as ASCII JSON, ready to be sent.
 */
export type StoredEntry = {
  /** Row id in the database; the same for all versions of an object. */
  readonly id: number
  /** `namespace/name`, or `name`. Lists are sorted by it. */
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly revision: number
  readonly text: string
  /** True when it has a deletionTimestamp: it waits for its finalizers. */
  readonly deleting: boolean
  readonly labels: Readonly<Record<string, string>> | undefined
  /** UIDs of its owners, for the garbage collector. */
  readonly owners: readonly string[] | undefined
  /** Values of the resource's selectable fields, in the order the resource declares them. */
  readonly fields: readonly string[] | undefined
  /** Upper half of the hash of the UID, for `shardSelector`, as a signed integer: see {@link uidHashOf}. Not hashed before the first use. */
  uidHash: number | undefined
}

/** The upper 32 bits of the hash of an object's UID: hashed once per object, however many lists and watches select by it. */
export function uidHashOf(entry: StoredEntry): number {
  // V8 stores a signed 32-bit integer in place.
  entry.uidHash ??= shardHashHigh(entry.uid) | 0
  return entry.uidHash >>> 0
}

/** Returns the selectable fields of an object, in their declared order. */
export type FieldReader = (object: KubeObject) => readonly string[] | undefined

/** @param before the previous version, if there is one. @param object must have its final metadata; `text` must be {@link stringifyAsciiJson} of it. */
export function entryOf(
  id: number,
  object: KubeObject,
  revision: number,
  text: string,
  readFields: FieldReader | undefined,
  before?: StoredEntry,
): StoredEntry {
  const { metadata } = object
  const namespace = metadata.namespace ?? ''
  return {
    id,
    key: namespace ? `${namespace}/${metadata.name}` : metadata.name,
    namespace,
    name: metadata.name,
    uid: metadata.uid,
    revision,
    text,
    deleting: metadata.deletionTimestamp !== undefined,
    labels: metadata.labels,
    owners: metadata.ownerReferences?.length ? metadata.ownerReferences.map(owner => owner.uid) : undefined,
    fields: readFields?.(object),
    uidHash: before?.uid === metadata.uid ? before.uidHash : undefined,
  }
}

/**
 * JSON in ASCII only: one byte per character in memory, in SQLite and on the wire, so the length is the Content-Length and V8 copies
 * it without encoding.
 */
export function stringifyAsciiJson(value: unknown): string {
  const text = JSON.stringify(value)
  const more = Buffer.byteLength(text) - text.length
  return more === 0 ? text : escapeNonAscii(text, more)
}

const hexDigits = Buffer.from('0123456789abcdef')

/** Through bytes: a callback of a regular expression takes ten times as long. `most`: the number of characters to escape, or more. */
function escapeNonAscii(text: string, most: number): string {
  const bytes = Buffer.allocUnsafe(text.length + 5 * most)
  let at = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x80) {
      bytes[at++] = code
      continue
    }
    bytes[at++] = 92
    bytes[at++] = 117
    for (let shift = 12; shift >= 0; shift -= 4) bytes[at++] = hexDigits[(code >> shift) & 15]!
  }
  return bytes.toString('latin1', 0, at)
}

export function parseEntry(entry: StoredEntry): KubeObject {
  return JSON.parse(entry.text) as KubeObject
}
