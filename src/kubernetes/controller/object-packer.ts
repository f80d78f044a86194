/**
 * What the objects of one cache have in common is kept once: for each place in them (`spec.version`) the field names that
 * stand there and the values that come again and again. What is left of an object is a short text.
 */
export class ObjectPacker {
  readonly #known: Known = { places: 0, values: 0 }
  readonly #root = new Place(this.#known)
  readonly #parts: string[] = []
  #text = ''
  #at = 0

  /** `value` as text for {@link unpack}, of this packer only. Holds what JSON would hold of it. */
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
    // Strings cut out of it hold the whole text: they may, but this should not.
    this.#text = ''
    return value
  }

  /** False for what only JSON.stringify knows how to write, such as a Date. */
  #pack(value: unknown, place: Place): boolean {
    const parts = this.#parts
    switch (typeof value) {
      case 'string': {
        const index = place.indexOf(value)
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
        return Array.isArray(value) ? this.#packList(value, place) : this.#packFields(value as Fields, place)
      default:
        return false
    }
  }

  #packList(list: unknown[], place: Place): boolean {
    if (list.length > maxLength) {
      this.#parts.push(tagJson, JSON.stringify(list), end)
      return true
    }
    this.#parts.push(tagList, String.fromCharCode(list.length))
    place.item ??= new Place(this.#known)
    for (const item of list) if (!this.#pack(item, place.item)) return false
    return true
  }

  #packFields(object: Fields, place: Place): boolean {
    const prototype = Object.getPrototypeOf(object)
    if (prototype !== Object.prototype && prototype !== null) return false
    const index = this.#form(object, place)
    if (index < 0) {
      this.#parts.push(tagJson, JSON.stringify(object), end)
      return true
    }
    this.#parts.push(tagFields, String.fromCharCode(index))
    const { names, places } = place.forms[index] as Form
    for (let at = 0; at < names.length; at++) {
      if (!this.#pack(object[names[at] as string], places[at] as Place)) return false
    }
    return true
  }

  /** Which of the lists of field names that were seen at this place is that of `object`; a new one, or -1 if there are too many. */
  #form(object: Fields, place: Place): number {
    const { forms } = place
    for (let index = 0; index < forms.length; index++) {
      const { names } = forms[index] as Form
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
    if (forms.length >= maxForms || names.length > maxFields || this.#known.places > maxPlaces || names.includes('__proto__')) return -1
    // A field is the same place whatever stands beside it.
    const places = names.map(name => forms.find(form => form.names.includes(name))?.placeOf(name) ?? new Place(this.#known))
    return forms.push(new Form(names, places)) - 1
  }

  #unpack(place: Place): unknown {
    const tag = this.#text.charCodeAt(this.#at++)
    if (tag >= firstIndex) return place.values[tag - firstIndex]
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
        const item = place.item as Place
        for (let left = this.#text.charCodeAt(this.#at++); left > 0; left--) list.push(this.#unpack(item))
        return list
      }
      case 7: {
        const { names, places } = place.forms[this.#text.charCodeAt(this.#at++)] as Form
        const object: Fields = {}
        for (let at = 0; at < names.length; at++) object[names[at] as string] = this.#unpack(places[at] as Place)
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

/** Ends what has no fixed length. In JSON it is always escaped. */
const end = '\0'
const tagString = '\x01'
const tagNumber = '\x02'
const tagTrue = '\x03'
const tagFalse = '\x04'
const tagNull = '\x05'
const tagList = '\x06'
const tagFields = '\x07'
const tagJson = '\x08'
/** From here on a character is the index of a value. All are below 256, which is one byte each in memory. */
const firstIndex = 16

const maxValues = 256 - firstIndex
const maxLength = 255
const maxForms = 32
const maxFields = 64
/** All of a packer together: what is known must stay small beside what is kept (invariant 10). */
type Known = { places: number; values: number }
const maxPlaces = 2_000
const maxValuesOfAll = 10_000
/** Long strings seldom come twice, and to look for one costs more. */
const maxValueLength = 64
/** So many values are looked through one by one. */
const maxCompared = 8
/** A place that showed so many strings, most of them new ones, is one of names or times: nothing is looked for there any more. */
const trialStrings = 64

class Form {
  readonly names: readonly string[]
  readonly places: readonly Place[]

  constructor(names: readonly string[], places: readonly Place[]) {
    this.names = names
    this.places = places
  }

  placeOf(name: string): Place | undefined {
    return this.places[this.names.indexOf(name)]
  }
}

class Place {
  readonly forms: Form[] = []
  readonly values: string[] = []
  item: Place | undefined = undefined
  readonly #indexes = new Map<string, number>()
  #isVaried = false
  readonly #known: Known
  #seen = 0
  #last = 0

  constructor(known: Known) {
    this.#known = known
    known.places++
  }

  /** Where `value` stands among the values of this place, which may learn it now; -1 if it is not one. */
  indexOf(value: string): number {
    if (this.#isVaried || value.length > maxValueLength) return -1
    const { values } = this
    this.#seen++
    if (values[this.#last] === value) return this.#last
    // A map enters each string it is asked for into V8's table of strings, which costs more than to compare a few.
    const known = values.length <= maxCompared ? values.indexOf(value) : (this.#indexes.get(value) ?? -1)
    if (known >= 0) {
      this.#last = known
      return known
    }
    if (values.length >= maxValues || this.#known.values >= maxValuesOfAll) return -1
    this.#known.values++
    const index = values.push(value) - 1
    this.#indexes.set(value, index)
    if (this.#seen >= trialStrings && index * 2 > this.#seen) {
      this.#isVaried = true
      this.#indexes.clear()
    }
    return index
  }
}
