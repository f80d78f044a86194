import { equalJson, type KubeObject, type StructuralSchema } from '../../../object/index.ts'
import { applyDefaults, pruneUnknown } from '../../../schema/index.ts'
import { asciiJson } from '../../storage/index.ts'

/** The version of a definition that its objects are stored in. */
export type StorageVersion = {
  readonly apiVersion: string
  readonly schema: StructuralSchema
  /**
   * Objects with a later revision were written under this very schema. Earlier ones are read as kube-apiserver reads them: without
   * what the schema no longer has, with the defaults it has now.
   */
  readonly since: number
}

/** One served version beside the one that is stored. */
type Served = { readonly apiVersion: string; readonly schema: StructuralSchema }

/**
 * How stored text becomes an object of `served`, with the None converter: versions differ in apiVersion, and in what their
 * schemas leave out. Nothing is read that need not be.
 */
export function fromStored(storage: StorageVersion, served: Served): (text: string, revision: number) => string {
  const isSameVersion = storage.apiVersion === served.apiVersion
  const prunes = !isSameVersion && !isSameShape(storage.schema, served.schema)
  // Stored objects begin with their apiVersion; see `canonical` in registry.ts.
  const start = `{"apiVersion":"${served.apiVersion}"`
  return (text, revision) => {
    if (revision > storage.since && !prunes) return text.startsWith(start) ? text : withApiVersion(text, start)
    let object = JSON.parse(text) as KubeObject
    if (revision <= storage.since) object = applyDefaults(storage.schema, pruned(storage.schema, object)) as KubeObject
    if (prunes) object = pruned(served.schema, object)
    const { apiVersion: _, kind, metadata, ...rest } = object
    return asciiJson({ apiVersion: served.apiVersion, kind, metadata, ...rest })
  }
}

/** How an object of `served` is stored; undefined when as it is. */
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

/** Whether both leave out the same fields. */
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

// What was stored under an older version keeps its text there.
function withApiVersion(text: string, start: string): string {
  return start + text.slice(text.indexOf('"', '{"apiVersion":"'.length) + 1)
}
