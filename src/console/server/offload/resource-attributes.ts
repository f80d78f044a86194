import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { Resource } from '../../../stores/pulumi/index.ts'
import type { ResourceDetails } from '../../protocol/index.ts'
import { boundObjects, type MarkedObject, type MarkedValue } from './bound-objects.ts'
import {
  allMarked,
  type Marks,
  marksOfInstance,
  marksOfResource,
  noMarks,
  partsOf,
  recordsSensitiveAttributes,
} from './sensitive-values.ts'
import { shownText } from './shown-text.ts'
import { type Instance, type JsonObject, parseStateContent } from './state-content.ts'

/** Inputs and outputs that have the same first characters are the same to a reader. */
const comparedCharacters = 64 * 1024

/**
 * What a state or an inventory has of one resource, without what is sensitive (invariant 9). Undefined: it has no resource with this address.
 * @throws {SyntaxError} for a text that is not a JSON object.
 */
export function attributesOf(text: string, address: string): Omit<ResourceDetails, 'version'> | undefined {
  const content = parseStateContent(text)
  switch (content.format) {
    case 'terraform': {
      const { engineVersion, instances } = content
      const isRecorded = recordsSensitiveAttributes(engineVersion)
      const found = instances.filter(each => each.address === address).map(each => instanceObject(each, isRecorded))
      return detailsOf('terraform', address, found, isRecorded ? {} : { unmarkedBy: engineVersion })
    }
    case 'pulumi':
      return detailsOf(
        'pulumi',
        address,
        content.resources.filter(each => each.address === address).map(({ resource }) => resourceObject(resource)),
      )
    case 'inventory':
      return detailsOf(
        'inventory',
        address,
        content.entries.filter(each => each.address === address).map(({ entry }) => entryObject(entry)),
      )
    case 'unknown':
      return undefined
  }
}

const detailsOf = (
  format: ResourceDetails['format'],
  address: string,
  found: readonly MarkedObject[],
  more: Pick<ResourceDetails, 'unmarkedBy'> = {},
) => (found.length === 0 ? undefined : { address, format, ...more, ...boundObjects(found) })

function instanceObject(found: Instance, isRecorded: boolean): MarkedObject {
  const { resource, instance } = found
  const { status, deposed, create_before_destroy, dependencies, attributes, attributes_flat: flat } = instance
  return {
    facts: factsOf({ provider: resource.provider, status, deposed, create_before_destroy, dependencies }),
    // Engines before Terraform 0.12 marked nothing.
    attributes: attributes === undefined ? valuesOf(flat, allMarked) : valuesOf(attributes, marksOfInstance(found, isRecorded)),
    inputs: [],
  }
}

function resourceObject(resource: Resource): MarkedObject {
  const { id, type, parent, provider, protect, external, pendingReplacement, retainOnDelete, deletedWith, dependencies } = resource
  const marks = marksOfResource(resource)
  const attributes = valuesOf(resource.outputs, marks.outputs)
  const textOf = ({ value, marks: marked }: MarkedValue) => shownText(value, marked, comparedCharacters)?.text
  const outputs = new Map(attributes.map(output => [output.name, output]))
  const isOutput = (input: MarkedValue) => {
    const output = outputs.get(input.name)
    return output !== undefined && textOf(output) === textOf(input)
  }
  return {
    facts: [
      ...factsOf({ id }, marks.id),
      ...factsOf({ type, parent, provider, protect, external, pendingReplacement, retainOnDelete, deletedWith, dependencies }),
    ],
    attributes,
    inputs: valuesOf(resource.inputs, marks.inputs).filter(input => !isOutput(input)),
  }
}

const entryObject = ({ apiVersion, kind, namespace, name, uid }: JsonObject): MarkedObject => ({
  facts: factsOf({ apiVersion, kind, namespace, name, uid }),
  ...{ attributes: [], inputs: [] },
})

/** Those that are recorded: engines leave out what is false, or have null or an empty text in place of it. */
const factsOf = (facts: JsonObject, marks: Marks = noMarks): MarkedValue[] =>
  Object.entries(facts).flatMap(([name, fact]) => {
    const value = Array.isArray(fact) && fact.every(item => typeof item === 'string') ? fact.join('\n') : fact
    return value === undefined || value === null || value === false || value === '' ? [] : [{ name, value, marks }]
  })

function valuesOf(value: unknown, marks: Marks): MarkedValue[] {
  if (value === undefined || value === null) return []
  const parts = isJsonObject(value) ? partsOf(value, marks) : undefined
  if (!parts) return [{ name: 'attributes', value, marks: allMarked }]
  return parts.map(part => ({ name: String(part.step), value: part.value, marks: part.marks })).sort((a, b) => (a.name < b.name ? -1 : 1))
}
