/**
 * Stores what the objects of one cache have in common only once: for each field path (`spec.version`) the lists of field names found
 * there and the repeated values. What remains of an object is a short text.
 */
export class ObjectPacker {
  readonly #counts: PackedCounts = { paths: 0, values: 0 }
  readonly #root = new FieldPath(this.#counts)
  readonly #parts: string[] = []
  #text = ''
  #at = 0

  /** Packs `value` into text for {@link unpack} of this packer only. Keeps what JSON would keep. */
  pack(value: object): string {
    const parts = this.#parts
    try {
      if (this.#pack(value, this.#root)) return parts.join('')
    } finally {
      parts.length = 0
    }
    return tagJson + JSON.stringify(value) + end
  }

  unpack(text: string): unknown {
    this.#text = text
    this.#at = 0
    const value = this.#unpack(this.#root)
    // Substrings keep the whole text alive; this field should not.
    this.#text = ''
    return value
  }

  /** False for values that only JSON.stringify can serialize, such as a Date. */
  #pack(value: unknown, path: FieldPath): boolean {
    const parts = this.#parts
    switch (typeof value) {
      case 'string': {
        const index = path.indexOf(value)
        if (index >= 0) parts.push(String.fromCharCode(firstIndex + index))
        else if (value.includes(end)) parts.push(tagJson, JSON.stringify(value), end)
        else parts.push(tagString, value, end)
        return true
      }
      case 'number':
        if (!Number.isFinite(value)) return false
        parts.push(tagNumber, String(value), end)
        return true
      case 'boolean':
        parts.push(value ? tagTrue : tagFalse)
        return true
      case 'object':
        if (value === null) {
          parts.push(tagNull)
          return true
        }
        return Array.isArray(value) ? this.#packList(value, path) : this.#packFields(value as Fields, path)
      default:
        return false
    }
  }

  #packList(list: unknown[], path: FieldPath): boolean {
    if (list.length > maxLength) {
      this.#parts.push(tagJson, JSON.stringify(list), end)
      return true
    }
    this.#parts.push(tagList, String.fromCharCode(list.length))
    path.item ??= new FieldPath(this.#counts)
    for (const item of list) if (!this.#pack(item, path.item)) return false
    return true
  }

  #packFields(object: Fields, path: FieldPath): boolean {
    const prototype = Object.getPrototypeOf(object)
    if (prototype !== Object.prototype && prototype !== null) return false
    const index = this.#fieldListIndex(object, path)
    if (index < 0) {
      this.#parts.push(tagJson, JSON.stringify(object), end)
      return true
    }
    this.#parts.push(tagFields, String.fromCharCode(index))
    const { names, paths } = path.fieldLists[index] as FieldList
    for (let at = 0; at < names.length; at++) {
      if (!this.#pack(object[names[at] as string], paths[at] as FieldPath)) return false
    }
    return true
  }

  /** Index of the list of field names of `object` among those seen at this path; adds a new one, or returns -1 if there are too many. */
  #fieldListIndex(object: Fields, path: FieldPath): number {
    const { fieldLists } = path
    for (let index = 0; index < fieldLists.length; index++) {
      const { names } = fieldLists[index] as FieldList
      let at = 0
      for (const name in object) {
        if (names[at] !== name) {
          at = -1
          break
        }
        at++
      }
      if (at === names.length) return index
    }
    const names = Object.keys(object)
    if (fieldLists.length >= maxFieldLists || names.length > maxFields || this.#counts.paths > maxPaths || names.includes('__proto__'))
      return -1
    // A field has the same path whatever its sibling fields are.
    const paths = names.map(
      name => fieldLists.find(fieldList => fieldList.names.includes(name))?.childPath(name) ?? new FieldPath(this.#counts),
    )
    return fieldLists.push(new FieldList(names, paths)) - 1
  }

  #unpack(path: FieldPath): unknown {
    const tag = this.#text.charCodeAt(this.#at++)
    if (tag >= firstIndex) return path.values[tag - firstIndex]
    switch (tag) {
      case 1:
        return this.#literal()
      case 2:
        return Number(this.#literal())
      case 3:
        return true
      case 4:
        return false
      case 5:
        return null
      case 6: {
        const list: unknown[] = []
        const item = path.item as FieldPath
        for (let left = this.#text.charCodeAt(this.#at++); left > 0; left--) list.push(this.#unpack(item))
        return list
      }
      case 7: {
        const { names, paths } = path.fieldLists[this.#text.charCodeAt(this.#at++)] as FieldList
        const object: Fields = {}
        for (let at = 0; at < names.length; at++) object[names[at] as string] = this.#unpack(paths[at] as FieldPath)
        return object
      }
      default:
        return JSON.parse(this.#literal())
    }
  }

  #literal(): string {
    const stop = this.#text.indexOf(end, this.#at)
    const literal = this.#text.slice(this.#at, stop)
    this.#at = stop + 1
    return literal
  }
}

type Fields = { [name: string]: unknown }

/** Terminates values of variable length. JSON always escapes it. */
const end = '\0'
const tagString = '\x01'
const tagNumber = '\x02'
const tagTrue = '\x03'
const tagFalse = '\x04'
const tagNull = '\x05'
const tagList = '\x06'
const tagFields = '\x07'
const tagJson = '\x08'
/** From here on a character is the index of a value. All are below 256, so a text takes one byte per character. */
const firstIndex = 16

const maxValues = 256 - firstIndex
const maxLength = 255
const maxFieldLists = 32
const maxFields = 64
/** Counts of the whole packer: the dictionary must stay small compared to what is stored (invariant 10). */
type PackedCounts = { paths: number; values: number }
const maxPaths = 2_000
const maxValuesOfAll = 10_000
/** Long strings rarely repeat, and looking one up costs more. */
const maxValueLength = 64
/** Up to this many values are compared linearly. */
const maxCompared = 8
/** A path that has seen this many strings, most of them new, holds names or times: it is no longer looked up. */
const trialStrings = 64

class FieldList {
  readonly names: readonly string[]
  readonly paths: readonly FieldPath[]

  constructor(names: readonly string[], paths: readonly FieldPath[]) {
    this.names = names
    this.paths = paths
  }

  childPath(name: string): FieldPath | undefined {
    return this.paths[this.names.indexOf(name)]
  }
}

class FieldPath {
  readonly fieldLists: FieldList[] = []
  readonly values: string[] = []
  item: FieldPath | undefined = undefined
  readonly #indexes = new Map<string, number>()
  #isVaried = false
  readonly #counts: PackedCounts
  #seen = 0
  #last = 0

  constructor(counts: PackedCounts) {
    this.#counts = counts
    counts.paths++
  }

  /** Index of `value` among the values of this path, which may be added now; -1 if it is not one of them. */
  indexOf(value: string): number {
    if (this.#isVaried || value.length > maxValueLength) return -1
    const { values } = this
    this.#seen++
    if (values[this.#last] === value) return this.#last
    // A map lookup enters each string into V8's string table, which costs more than comparing a few.
    const known = values.length <= maxCompared ? values.indexOf(value) : (this.#indexes.get(value) ?? -1)
    if (known >= 0) {
      this.#last = known
      return known
    }
    if (values.length >= maxValues || this.#counts.values >= maxValuesOfAll) return -1
    this.#counts.values++
    const index = values.push(value) - 1
    this.#indexes.set(value, index)
    if (this.#seen >= trialStrings && index * 2 > this.#seen) {
      this.#isVaried = true
      this.#indexes.clear()
    }
    return index
  }
}
