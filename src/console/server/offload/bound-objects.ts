import { maxAttributeBytes, maxAttributes, type ResourceAttribute, type ResourceDetails } from '../../protocol/index.ts'
import type { Marks } from './sensitive-values.ts'
import { cutText, type ShownText, shownText } from './shown-text.ts'

export type MarkedValue = { readonly name: string; readonly value: unknown; readonly marks: Marks }
export type MarkedObject = { readonly [Part in (typeof partNames)[number]]: readonly MarkedValue[] }

const partNames = ['facts', 'attributes', 'inputs'] as const
const maxObjects = 10
/** Schemas have shorter names. */
const maxNameCharacters = 200

/** The texts of objects, of which those that are too long are cut: together they have at most {@link maxAttributeBytes}. */
export function boundObjects(objects: readonly MarkedObject[]): Pick<ResourceDetails, 'objects' | 'moreObjects'> {
  let left = maxAttributes
  const counted = objects.slice(0, maxObjects).map(object => {
    const take = (values: readonly MarkedValue[]) => {
      const taken = values.slice(0, left).map(({ name, value, marks }) => ({ name, shown: shownText(value, marks, maxAttributeBytes) }))
      left -= taken.length
      return taken
    }
    const [facts, attributes, inputs] = partNames.map(part => take(object[part])) as [Taken[], Taken[], Taken[]]
    const all = partNames.reduce((sum, part) => sum + object[part].length, 0)
    return { facts, attributes, inputs, more: all - facts.length - attributes.length - inputs.length }
  })
  const maxBytes = fairShare(
    counted.flatMap(object => partNames.flatMap(part => object[part])).map(({ shown }) => bytesOf(shown?.text ?? '')),
    maxAttributeBytes,
  )
  const bound = (taken: readonly Taken[]) => taken.map(each => attributeOf(each, maxBytes))
  return {
    objects: counted.map(({ facts, attributes, inputs, more }) => ({
      ...{ facts: bound(facts), attributes: bound(attributes), inputs: bound(inputs), more },
    })),
    moreObjects: objects.length - counted.length,
  }
}

type Taken = { readonly name: string; readonly shown: ShownText | undefined }

function attributeOf({ name, shown }: Taken, maxBytes: number): ResourceAttribute {
  const short = cutText(name, maxNameCharacters)
  const shortName = short.isCut ? `${short.text}…` : name
  if (!shown) return { name: shortName }
  const { text, isCut } = cutToBytes(shown, maxBytes)
  return { name: shortName, text, ...(isCut && { isCut }) }
}

/** How many bytes each may have, so that all have at most `total`: short ones leave theirs to long ones. */
export function fairShare(sizes: readonly number[], total: number): number {
  let left = total
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(left / (sizes.length - index))
    if (size > share) return share
    left -= size
  }
  return total
}

/** As JSON: of control characters, and those that are not ASCII, a text has several times its length. */
const bytesOf = (text: string) => Buffer.byteLength(JSON.stringify(text))

function cutToBytes(shown: ShownText, maxBytes: number): ShownText {
  let cut = shown
  for (let bytes = bytesOf(cut.text); bytes > maxBytes && cut.text !== ''; bytes = bytesOf(cut.text))
    cut = { ...cutText(cut.text, Math.floor((cut.text.length * maxBytes) / bytes)), isCut: true }
  return cut
}
