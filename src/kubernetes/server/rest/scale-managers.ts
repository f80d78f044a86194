import { isJsonObject, type ManagedFieldsEntry } from '../../object/index.ts'

type Fields = { [key: string]: unknown }

const scaleApiVersion = 'autoscaling/v1'
const scalePath = ['spec', 'replicas']

/**
 * The field managers of an object's number of replicas, as managers of its Scale.
 * @param path of that number in the object, such as `['spec', 'replicas']`.
 */
export function moveToScale(parent: readonly ManagedFieldsEntry[], path: readonly string[], apiVersion: string): ManagedFieldsEntry[] {
  return parent
    .filter(entry => entry.apiVersion === apiVersion && owns(entry, path))
    .map(entry => ({ ...entry, apiVersion: scaleApiVersion, fieldsV1: fieldsAt(scalePath) }))
}

/**
 * The field managers of an object after a write to its Scale: a manager that lost the number of replicas there loses it here, and the
 * new one owns it through the subresource.
 */
export function moveToParent(
  parent: readonly ManagedFieldsEntry[],
  scale: readonly ManagedFieldsEntry[],
  path: readonly string[],
  apiVersion: string,
): ManagedFieldsEntry[] {
  const owners = scale.filter(entry => owns(entry, scalePath))
  const result: ManagedFieldsEntry[] = []
  for (const entry of parent) {
    const index = entry.apiVersion === apiVersion && owns(entry, path) ? owners.findIndex(owner => isSameManager(owner, entry)) : undefined
    if (index === undefined) result.push(entry)
    else if (index >= 0) {
      owners.splice(index, 1)
      result.push(entry)
    } else {
      const fieldsV1 = without(entry.fieldsV1 as Fields, path)
      if (fieldsV1) result.push({ ...entry, fieldsV1: fieldsV1 as ManagedFieldsEntry['fieldsV1'] })
    }
  }
  return [...result, ...owners.map(owner => ({ ...owner, apiVersion, fieldsV1: fieldsAt(path) }))]
}

function isSameManager(a: ManagedFieldsEntry, b: ManagedFieldsEntry): boolean {
  return a.manager === b.manager && a.operation === b.operation && (a.subresource ?? '') === (b.subresource ?? '')
}

function owns({ fieldsV1 }: ManagedFieldsEntry, path: readonly string[]): boolean {
  let fields: unknown = fieldsV1
  for (const name of path) {
    if (!isJsonObject(fields) || !Object.hasOwn(fields, `f:${name}`)) return false
    fields = fields[`f:${name}`]
  }
  return true
}

function fieldsAt(path: readonly string[]): NonNullable<ManagedFieldsEntry['fieldsV1']> {
  return path.reduceRight<NonNullable<ManagedFieldsEntry['fieldsV1']>>((below, name) => ({ [`f:${name}`]: below }), {})
}

/** The fields without `path`; undefined when none remain. */
function without(fields: Fields, [name, ...rest]: readonly string[]): Fields | undefined {
  const { [`f:${name}`]: child, ...others } = fields
  const left = rest.length > 0 ? without(child as Fields, rest) : undefined
  const result = left ? { ...others, [`f:${name}`]: left } : others
  return Object.keys(result).length > 0 ? result : undefined
}
