/** A parameter of a path or a query. */
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

export const prettyParameter = query('pretty', 'string', "If 'true', the answer may be indented.")

const dryRun = query('dryRun', 'string', 'When All, nothing is stored.')

export const writeParameters: readonly Parameter[] = [
  dryRun,
  query('fieldManager', 'string', 'Who owns the fields that this request sets.'),
  query('fieldValidation', 'string', 'What happens to unknown fields: Ignore, Warn or Strict.'),
]

export const patchParameters: readonly Parameter[] = [
  ...writeParameters,
  query('force', 'boolean', 'Take over fields of other managers (apply patches only).'),
]

export const deleteParameters: readonly Parameter[] = [
  dryRun,
  query('gracePeriodSeconds', 'integer', 'How long the object may take to end by itself.'),
  query('orphanDependents', 'boolean', 'Deprecated: use propagationPolicy.'),
  query('propagationPolicy', 'string', 'What becomes of the objects it owns: Orphan, Background or Foreground.'),
]

const selectionParameters: readonly Parameter[] = [
  query('continue', 'string', 'Go on with a list.'),
  query('fieldSelector', 'string', 'Restrict the objects by their fields.'),
  query('labelSelector', 'string', 'Restrict the objects by their labels.'),
  query('limit', 'integer', 'At most so many objects in one answer.'),
  query('resourceVersion', 'string', 'From which version on.'),
  query('resourceVersionMatch', 'string', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('sendInitialEvents', 'boolean', 'Begin the watch with the objects there are.'),
  query('shardSelector', 'string', 'Restrict the objects to ranges of the hash of their uid or namespace.'),
  query('timeoutSeconds', 'integer', 'How long the call may last.'),
]

export const listParameters: readonly Parameter[] = sortedByName([
  query('allowWatchBookmarks', 'boolean', 'Send bookmarks to this watch.'),
  ...selectionParameters,
  query('watch', 'boolean', 'Send changes instead of a list.'),
])

export const deleteCollectionParameters: readonly Parameter[] = sortedByName([...selectionParameters, ...deleteParameters])

function sortedByName(parameters: Parameter[]): Parameter[] {
  return parameters.sort((a, b) => (a.name < b.name ? -1 : 1))
}
