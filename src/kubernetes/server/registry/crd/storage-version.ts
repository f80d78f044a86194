import { equalJson, type KubeObject, type StructuralSchema } from '../../../object/index.ts'
import { applyDefaults, pruneUnknown } from '../../../schema/index.ts'
import { stringifyAsciiJson } from '../../storage/index.ts'

/** The version of a definition in which its objects are stored. */
export type StorageVersion = {
  readonly apiVersion: string
  readonly schema: StructuralSchema
  /**
   * Objects with a later revision were written with this schema. Earlier objects are read as in kube-apiserver: unknown fields are removed
   * and current defaults are set.
   */
  readonly since: number
}

/** A served version. */
type Served = { readonly apiVersion: string; readonly schema: StructuralSchema }

/**
 * Returns the conversion from stored text to `served`, with the strategy None: versions differ in apiVersion and in the fields that their
 * schemas prune. The text is parsed only if it must change.
 */
export function fromStored(storage: StorageVersion, served: Served): (text: string, revision: number) => string {
  const isSameVersion = storage.apiVersion === served.apiVersion
  const prunes = !isSameVersion && !isSameShape(storage.schema, served.schema)
  // Stored objects begin with their apiVersion.
  const start = `{"apiVersion":"${served.apiVersion}"`
  return (text, revision) => {
    if (revision > storage.since && !prunes) return text.startsWith(start) ? text : withApiVersion(text, start)
    let object = JSON.parse(text) as KubeObject
    if (revision <= storage.since) object = applyDefaults(storage.schema, pruned(storage.schema, object)) as KubeObject
    if (prunes) object = pruned(served.schema, object)
    const { apiVersion: _, kind, metadata, ...rest } = object
    return stringifyAsciiJson({ apiVersion: served.apiVersion, kind, metadata, ...rest })
  }
}

/** Returns the conversion from `served` to the storage version; undefined if they are the same. */
export function toStored(storage: StorageVersion, served: Served): ((object: KubeObject) => KubeObject) | undefined {
  if (storage.apiVersion === served.apiVersion) return undefined
  const prunes = !isSameShape(storage.schema, served.schema)
  return object => ({
    ...(applyDefaults(storage.schema, prunes ? pruned(storage.schema, object) : object) as KubeObject),
    apiVersion: storage.apiVersion,
    metadata: object.metadata,
  })
}

const pruned = (schema: StructuralSchema, object: KubeObject) => pruneUnknown(schema, object, '').value as KubeObject

/** Whether both prune the same fields. */
function isSameShape(a: StructuralSchema, b: StructuralSchema): boolean {
  return equalJson(shapeOf(a), shapeOf(b))
}

function shapeOf(schema: StructuralSchema): unknown {
  const { properties, items, additionalProperties } = schema
  return {
    keepsUnknown: schema['x-kubernetes-preserve-unknown-fields'] === true,
    isResource: schema['x-kubernetes-embedded-resource'] === true,
    properties: properties && Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, shapeOf(child)])),
    items: items && shapeOf(items),
    rest: typeof additionalProperties === 'object' ? shapeOf(additionalProperties) : additionalProperties === true,
  }
}

// An object that was stored in an older version keeps that apiVersion in its text.
function withApiVersion(text: string, start: string): string {
  return start + text.slice(text.indexOf('"', '{"apiVersion":"'.length) + 1)
}
