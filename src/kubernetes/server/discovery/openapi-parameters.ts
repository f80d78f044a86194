/** A path or query parameter. */
export type Parameter = {
  readonly name: string
  readonly location: 'path' | 'query'
  readonly type: 'string' | 'integer' | 'boolean'
  readonly description: string
}

const query = (name: string, type: Parameter['type'], description: string): Parameter => ({ name, location: 'query', type, description })

export const nameParameter = (kind: string): Parameter => ({
  name: 'name',
  location: 'path',
  type: 'string',
  description: `name of the ${kind}`,
})

export const namespaceParameter: Parameter = {
  name: 'namespace',
  location: 'path',
  type: 'string',
  description: 'object name and auth scope, such as for teams and projects',
}

export const prettyParameter = query('pretty', 'string', "If 'true', the response may be indented.")

const dryRun = query('dryRun', 'string', 'With the value All, nothing is persisted.')

export const writeParameters: readonly Parameter[] = [
  dryRun,
  query('fieldManager', 'string', 'The name of the manager of the fields that this request sets.'),
  query('fieldValidation', 'string', 'How to handle unknown and duplicate fields: Ignore, Warn or Strict.'),
]

export const patchParameters: readonly Parameter[] = [
  ...writeParameters,
  query('force', 'boolean', 'Force apply: take ownership of fields of other managers (apply patches only).'),
]

export const deleteParameters: readonly Parameter[] = [
  dryRun,
  query('gracePeriodSeconds', 'integer', 'The duration in seconds before the object is deleted.'),
  query('orphanDependents', 'boolean', 'Deprecated: use propagationPolicy.'),
  query('propagationPolicy', 'string', 'Whether and how dependents are garbage collected: Orphan, Background or Foreground.'),
]

const selectionParameters: readonly Parameter[] = [
  query('continue', 'string', 'The continue token of the previous page of a list.'),
  query('fieldSelector', 'string', 'Restrict the objects by their fields.'),
  query('labelSelector', 'string', 'Restrict the objects by their labels.'),
  query('limit', 'integer', 'The maximum number of objects in one response.'),
  query('resourceVersion', 'string', 'The resource version to start from.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is applied: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'Begin the watch with synthetic events for the existing objects.'),
  query('shardSelector', 'string', 'Restrict the objects to ranges of the hash of their uid or namespace.'),
  query('timeoutSeconds', 'integer', 'The timeout of the list or watch call in seconds.'),
]

export const listParameters: readonly Parameter[] = sortedByName([
  query('allowWatchBookmarks', 'boolean', 'Send bookmark events to this watch.'),
  ...selectionParameters,
  query('watch', 'boolean', 'Watch for changes instead of returning a list.'),
])

export const deleteCollectionParameters: readonly Parameter[] = sortedByName([...selectionParameters, ...deleteParameters])

function sortedByName(parameters: Parameter[]): Parameter[] {
  return parameters.sort((a, b) => (a.name < b.name ? -1 : 1))
}
