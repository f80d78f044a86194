import { parseAllDocuments } from 'yaml'
import { isJsonObject, type NewObject } from '../../../kubernetes/object/index.ts'
import { EngineError } from '../engine-error.ts'

/** An object of the source. `place` says where it stands, for messages: `app.yaml document 2, Deployment shop/web`. */
export type Manifest = { object: NewObject & { apiVersion: string; kind: string }; location: string }

/** How often one alias may be followed: an alias bomb is refused before it grows. */
const maxAliasCount = 100

/**
 * Reads `*.yaml`, `*.yml` and `*.json` files: any number of documents, `List` kinds unfolded, empty documents skipped.
 * @throws {EngineError} InvalidConfiguration, naming file and document.
 */
export function parseManifests(files: readonly { path: string; text: string }[]): Manifest[] {
  const manifests: Manifest[] = []
  for (const { path, text } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const documents = parseAllDocuments(text, { prettyErrors: true, uniqueKeys: true })
    const many = documents.length > 1
    documents.forEach((document, index) => {
      const place = many ? `${path} document ${index + 1}` : path
      const [error] = document.errors
      if (error) throw invalid(place, `is no YAML: ${error.message.split('\n')[0]?.replace(/:$/, '')}`)
      let value: unknown
      try {
        value = document.toJS({ maxAliasCount })
      } catch (error) {
        throw invalid(place, `cannot be read: ${(error as Error).message}`)
      }
      addObjects(manifests, value, place)
    })
  }
  refuseDuplicates(manifests)
  return manifests
}

function addObjects(manifests: Manifest[], value: unknown, place: string): void {
  if (value === null || value === undefined) return
  if (!isJsonObject(value))
    throw invalid(place, `must be an object with apiVersion, kind and metadata, got ${Array.isArray(value) ? 'a list' : typeof value}`)
  const { apiVersion, kind, metadata } = value
  if (kind === 'Kustomization' && String(apiVersion).startsWith('kustomize.config.k8s.io/')) {
    throw invalid(place, 'is for kustomize, which this engine does not run; commit the built manifests, or use engine command')
  }
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(value.items)) {
    for (const [index, item] of value.items.entries()) addObjects(manifests, item, `${place} item ${index + 1}`)
    return
  }
  if (typeof apiVersion !== 'string' || apiVersion === '') throw invalid(place, 'has no apiVersion, such as v1 or apps/v1')
  if (typeof kind !== 'string' || kind === '') throw invalid(place, 'has no kind, such as ConfigMap')
  if (!isJsonObject(metadata)) throw invalid(place, `is a ${kind} without metadata`)
  const { name, namespace, generateName } = metadata
  if (generateName !== undefined && name === undefined) {
    throw invalid(place, `is a ${kind} with metadata.generateName; an object that is applied again and again needs metadata.name`)
  }
  if (typeof name !== 'string' || name === '') throw invalid(place, `is a ${kind} without metadata.name`)
  if (namespace !== undefined && typeof namespace !== 'string')
    throw invalid(place, `is ${kind} ${name} with a metadata.namespace that is no text`)
  const { status: _, ...object } = value
  manifests.push({ object: object as Manifest['object'], location: `${place}, ${kind} ${namespace ? `${namespace}/` : ''}${name}` })
}

function refuseDuplicates(manifests: readonly Manifest[]): void {
  const seen = new Map<string, string>()
  for (const { object, location } of manifests) {
    const group = object.apiVersion.includes('/') ? object.apiVersion.split('/')[0] : ''
    const key = [group, object.kind, object.metadata.namespace ?? '', object.metadata.name].join('\n')
    const other = seen.get(key)
    if (other !== undefined) throw invalid(location, `stands a second time: the first is in ${other}`)
    seen.set(key, location)
  }
}

function invalid(place: string, what: string): EngineError {
  const file = /^(.*?)(?: document \d+)?(?: item \d+)*(?:, .*)?$/.exec(place)?.[1]
  return new EngineError('InvalidConfiguration', `${place} ${what}`, {
    retryable: false,
    diagnostics: [{ severity: 'error', summary: `${place} ${what}`, ...(file && { file }) }],
  })
}
