import { isJsonObject, type NewObject } from '../../../kubernetes/object/index.ts'
import { parseUntrustedDocuments } from '../../../kubernetes/util/index.ts'
import { EngineError } from '../engine-error.ts'

/** An object of the source. `location` names it in messages: `app.yaml document 2, Deployment shop/web`. */
export type Manifest = { object: NewObject & { apiVersion: string; kind: string }; location: string }

export type ManifestFile = { path: string; text: string }

/**
 * Parses `*.yaml`, `*.yml` and `*.json` files with any number of documents. Expands `List` kinds and skips empty documents.
 * @throws {EngineError} InvalidConfiguration, naming file and document.
 */
export function parseManifests(files: readonly ManifestFile[]): Manifest[] {
  const manifests: Manifest[] = []
  for (const { path, text } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const values = documentsOf(path, text)
    for (const [index, value] of values.entries()) addObjects(manifests, value, values.length > 1 ? `${path} document ${index + 1}` : path)
  }
  rejectDuplicates(manifests)
  return manifests
}

function documentsOf(path: string, text: string): unknown[] {
  const values: unknown[] = []
  try {
    for (const value of parseUntrustedDocuments(text)) values.push(value)
  } catch (error) {
    throw invalid(values.length > 0 ? `${path} document ${values.length + 1}` : path, `is not valid YAML: ${(error as Error).message}`)
  }
  return values
}

function addObjects(manifests: Manifest[], value: unknown, location: string): void {
  if (value === null || value === undefined) return
  if (!isJsonObject(value))
    throw invalid(location, `must be an object with apiVersion, kind and metadata, got ${Array.isArray(value) ? 'a list' : typeof value}`)
  const { apiVersion, kind, metadata } = value
  if (kind === 'Kustomization' && String(apiVersion).startsWith('kustomize.config.k8s.io/')) {
    throw invalid(location, 'is a Kustomization, which this engine does not support; commit the built manifests, or use engine command')
  }
  if (typeof kind === 'string' && kind.endsWith('List') && Array.isArray(value.items)) {
    for (const [index, item] of value.items.entries()) addObjects(manifests, item, `${location} item ${index + 1}`)
    return
  }
  if (typeof apiVersion !== 'string' || apiVersion === '') throw invalid(location, 'has no apiVersion; set one such as v1 or apps/v1')
  if (typeof kind !== 'string' || kind === '') throw invalid(location, 'has no kind; set one such as ConfigMap')
  if (!isJsonObject(metadata)) throw invalid(location, `is a ${kind} without metadata`)
  const { name, namespace, generateName } = metadata
  if (generateName !== undefined && name === undefined) {
    throw invalid(location, `is a ${kind} with metadata.generateName; set metadata.name, because every Run applies the same object`)
  }
  if (typeof name !== 'string' || name === '') throw invalid(location, `is a ${kind} without metadata.name`)
  if (namespace !== undefined && typeof namespace !== 'string')
    throw invalid(location, `is ${kind} ${name} with a metadata.namespace that is not a string`)
  const { status: _, ...object } = value
  manifests.push({ object: object as Manifest['object'], location: `${location}, ${kind} ${namespace ? `${namespace}/` : ''}${name}` })
}

function rejectDuplicates(manifests: readonly Manifest[]): void {
  const seen = new Map<string, string>()
  for (const { object, location } of manifests) {
    const group = object.apiVersion.includes('/') ? object.apiVersion.split('/')[0] : ''
    const key = [group, object.kind, object.metadata.namespace ?? '', object.metadata.name].join('\n')
    const other = seen.get(key)
    if (other !== undefined) throw invalid(location, `is a duplicate of ${other}`)
    seen.set(key, location)
  }
}

function invalid(location: string, problem: string): EngineError {
  const file = /^(.*?)(?: document \d+)?(?: item \d+)*(?:, .*)?$/.exec(location)?.[1]
  return new EngineError('InvalidConfiguration', `${location} ${problem}`, {
    retryable: false,
    diagnostics: [{ severity: 'error', summary: `${location} ${problem}`, ...(file && { file }) }],
  })
}
