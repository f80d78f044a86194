import { type Kind, scaleKindFor } from '../registry/index.ts'
import { scaleSchemaName, schemaName } from './openapi-schemas.ts'

type Operation = { [key: string]: unknown }

const bodyTypes = ['application/json', 'application/yaml']
const jsonPatchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']

/** How this server's paths are said in OpenAPI 3 or in Swagger 2. */
export type Dialect = 3 | 2

/** The paths of one kind: its collection, its objects, their subresources. */
export function pathsOf(kind: Kind, dialect: Dialect): Record<string, object> {
  const { group, version, plural, namespaced } = kind
  const base = `${group ? `/apis/${group}` : '/api'}/${version}`
  const collection = `${base}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`
  const one = pathParameters(namespaced, true, dialect)
  const all = pathParameters(namespaced, false, dialect)
  const say = (action: string, id: string, options: Partial<OperationOptions> = {}) => operation(kind, dialect, action, id, options)
  const paths: Record<string, object> = {
    [collection]: {
      parameters: all,
      get: say('list', 'list', { list: true, query: listParameters }),
      post: say('post', 'create', { body: bodyTypes, query: writeParameters }),
      delete: say('deletecollection', 'deletecollection', { status: true, query: listParameters }),
    },
    [`${collection}/{name}`]: itemPaths(kind, dialect, one, ''),
  }
  if (namespaced) paths[`${base}/${plural}`] = { get: say('list', 'listAll', { list: true, query: listParameters }) }
  if (kind.hasStatus) paths[`${collection}/{name}/status`] = itemPaths(kind, dialect, one, 'Status')
  if (kind.scale) paths[`${collection}/{name}/scale`] = itemPaths(kind, dialect, one, 'Scale', scaleKindFor(kind))
  return paths
}

/** @param shown what is read and written there, when that is not the kind itself. */
function itemPaths(kind: Kind, dialect: Dialect, parameters: object[], suffix: string, shown?: Kind): object {
  const say = (action: string, id: string, options: Partial<OperationOptions> = {}) =>
    operation(kind, dialect, action, id + suffix, { ...options, shown })
  const patchTypes = kind.isCustom ? jsonPatchTypes : [...jsonPatchTypes, 'application/strategic-merge-patch+json']
  return {
    parameters,
    get: say('get', 'read'),
    put: say('put', 'replace', { body: bodyTypes, query: writeParameters }),
    patch: say('patch', 'patch', {
      body: patchTypes,
      isPatch: true,
      query: [...writeParameters, ['force', 'boolean', 'Take over fields of other managers (apply patches only).']],
    }),
    ...(suffix === '' && { delete: say('delete', 'delete', { status: true, query: [writeParameters[0]!] }) }),
  }
}

type Parameter = [name: string, type: string, description: string]
type OperationOptions = { body: string[]; isPatch: boolean; list: boolean; status: boolean; shown: Kind | undefined; query: Parameter[] }

const writeParameters: Parameter[] = [
  ['dryRun', 'string', 'When All, nothing is stored.'],
  ['fieldManager', 'string', 'Who owns the fields that this request sets.'],
  ['fieldValidation', 'string', 'What happens to unknown fields: Ignore, Warn or Strict.'],
]
const listParameters: Parameter[] = [
  ['allowWatchBookmarks', 'boolean', 'Send bookmarks to this watch.'],
  ['continue', 'string', 'Go on with a list.'],
  ['fieldSelector', 'string', 'Restrict the objects by their fields.'],
  ['labelSelector', 'string', 'Restrict the objects by their labels.'],
  ['limit', 'integer', 'At most so many objects in one answer.'],
  ['resourceVersion', 'string', 'From which version on.'],
  ['resourceVersionMatch', 'string', 'How resourceVersion is meant.'],
  ['sendInitialEvents', 'boolean', 'Begin the watch with the objects there are.'],
  ['timeoutSeconds', 'integer', 'How long the call may last.'],
  ['watch', 'boolean', 'Send changes instead of a list.'],
]

function operation(
  kind: Kind,
  dialect: Dialect,
  action: string,
  id: string,
  { body, isPatch, list, status, shown, query = [] }: Partial<OperationOptions>,
): Operation {
  const { group, version } = kind
  const prefix = dialect === 3 ? '#/components/schemas/' : '#/definitions/'
  const name = shown ? scaleSchemaName : schemaName(kind)
  const { group: shownGroup, version: shownVersion, kind: shownKind } = shown ?? kind
  const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'
  const answered = { $ref: prefix + (status ? `${meta}.Status` : list ? `${name}List` : name) }
  const sent = { $ref: prefix + (isPatch ? `${meta}.Patch` : name) }
  const ofKind = {
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: shownGroup, version: shownVersion, kind: shownKind },
  }
  const operationId = `${id}${group.split('.')[0] || 'core'}${version}${kind.kind}`
  const inQuery = query.map(([parameter, type, description]) => parameterOf(parameter, 'query', type, description, dialect))
  if (dialect === 2) {
    const inBody = body ? [{ name: 'body', in: 'body', required: true, schema: sent }] : []
    return {
      operationId,
      consumes: body ?? ['*/*'],
      produces: bodyTypes,
      schemes: ['https'],
      parameters: [...inBody, ...inQuery],
      responses: { 200: { description: 'OK', schema: answered } },
      ...ofKind,
    }
  }
  return {
    operationId,
    parameters: inQuery,
    ...(body && { requestBody: { required: true, content: Object.fromEntries(body.map(type => [type, { schema: sent }])) } }),
    responses: { 200: { description: 'OK', content: Object.fromEntries(bodyTypes.map(type => [type, { schema: answered }])) } },
    ...ofKind,
  }
}

function pathParameters(namespaced: boolean, named: boolean, dialect: Dialect): object[] {
  const parameters: object[] = []
  if (named) parameters.push({ ...parameterOf('name', 'path', 'string', 'Name of the object.', dialect), required: true })
  if (namespaced) parameters.push({ ...parameterOf('namespace', 'path', 'string', 'Namespace of the object.', dialect), required: true })
  return parameters
}

function parameterOf(name: string, place: string, type: string, description: string, dialect: Dialect): object {
  const typed = dialect === 3 ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true }
  return { name, in: place, description, ...typed }
}
