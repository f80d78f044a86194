import { bindingKind, type Kind, scaleKindFor, tokenRequestKind, type Verb } from '../registry/index.ts'
import {
  deleteCollectionParameters,
  deleteParameters,
  listParameters,
  nameParameter,
  namespaceParameter,
  type Parameter,
  patchParameters,
  prettyParameter,
  writeParameters,
} from './openapi-parameters.ts'
import { scaleSchemaName, schemaName } from './openapi-schemas.ts'

type Operation = { [key: string]: unknown }

/** The version of OpenAPI in which paths are described. */
export type OpenApiVersion = 3 | 2

const responseTypes = ['application/json', 'application/yaml']
const streamTypes = [...responseTypes, 'application/json;stream=watch']
const patchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
const strategicPatchTypes = patchTypes.toSpliced(2, 0, 'application/strategic-merge-patch+json')
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The paths of a kind: its collection, its objects and their subresources. */
export function pathsOf(kind: Kind, dialect: OpenApiVersion): Record<string, object> {
  const { group, version, plural, namespaced } = kind
  const base = `${group ? `/apis/${group}` : '/api'}/${version}`
  const collection = `${base}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`
  const inNamespace = namespaced ? [namespaceParameter] : []
  const one = [nameParameter(kind.kind), ...inNamespace, prettyParameter]
  const writer = new OperationWriter(kind, dialect)
  const paths: Record<string, object> = {
    [collection]: {
      ...writer.list('list'),
      ...writer.create(),
      ...writer.deleteCollection(),
      parameters: writer.parameters([...inNamespace, prettyParameter]),
    },
  }
  // Objects of a virtual kind cannot be read by name.
  if (kind.isVirtual) return paths
  paths[`${collection}/{name}`] = {
    ...writer.read(''),
    ...writer.replace(''),
    ...writer.delete(),
    ...writer.patch(''),
    parameters: writer.parameters(one),
  }
  if (namespaced)
    paths[`${base}/${plural}`] = { ...writer.list('listAll'), parameters: writer.parameters([prettyParameter, ...listParameters]) }
  const subresource = (suffix: string, of = writer) => ({
    ...of.read(suffix),
    ...of.replace(suffix),
    ...of.patch(suffix),
    parameters: writer.parameters(one),
  })
  if (kind.hasStatus) paths[`${collection}/{name}/status`] = subresource('Status')
  if (kind.scale) paths[`${collection}/{name}/scale`] = subresource('Scale', new OperationWriter(kind, dialect, scaleKindFor(kind)))
  if (kind.storageName === 'serviceaccounts') {
    const token = new OperationWriter(kind, dialect, tokenRequestKind)
    paths[`${collection}/{name}/token`] = { ...token.create('Token'), parameters: writer.parameters(one) }
  }
  if (kind.storageName === 'pods') {
    const binding = new OperationWriter(kind, dialect, bindingKind)
    paths[`${collection}/{name}/binding`] = { ...binding.create('Binding'), parameters: writer.parameters(one) }
  }
  if (group === '' && plural === 'namespaces') {
    paths[`${collection}/{name}/finalize`] = { ...writer.replace('Finalize'), parameters: writer.parameters(one) }
  }
  return paths
}

type OperationSpec = {
  action: string
  id: string
  description: string
  query?: readonly Parameter[]
  response: string
  codes: readonly (200 | 201 | 202)[]
  types?: readonly string[]
  body?: { schema: string; types: readonly string[]; isRequired: boolean }
}

const codeTexts = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

/** Writes operations with Kubernetes' operation IDs, so that generated clients have the method names that users know. */
class OperationWriter {
  readonly #kind: Kind
  readonly #version: OpenApiVersion
  readonly #shown: Kind
  readonly #schema: string

  /** @param shown the kind that the operation reads and writes, if it is not `kind`. */
  constructor(kind: Kind, dialect: OpenApiVersion, shown?: Kind) {
    this.#kind = kind
    this.#version = dialect
    this.#shown = shown ?? kind
    this.#schema = shown?.typeName ?? (shown ? scaleSchemaName : schemaName(kind))
  }

  parameters(of: readonly Parameter[]): object[] {
    return of.map(parameter => {
      const { name, location, type, description } = parameter
      const typed = this.#version === 3 ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true }
      return { name, in: location, description, ...(location === 'path' && { required: true }), ...typed }
    })
  }

  list(id: 'list' | 'listAll'): object {
    const { kind, namespaced } = this.#kind
    const operationId =
      id === 'listAll'
        ? `list${this.#groupVersion}${kind}ForAllNamespaces`
        : `list${this.#groupVersion}${namespaced ? 'Namespaced' : ''}${kind}`
    const query = id === 'list' ? listParameters : undefined
    const description = `list or watch objects of kind ${kind}`
    return this.#operation('get', 'list', {
      action: 'list',
      id: operationId,
      description,
      query,
      response: `${this.#schema}List`,
      codes: [200],
      types: streamTypes,
    })
  }

  create(suffix = ''): object {
    const { kind } = this.#kind
    return this.#operation('post', 'create', {
      action: 'post',
      id: this.#id('create', suffix),
      description: suffix ? `create ${suffix.toLowerCase()} of ${article(kind)} ${kind}` : `create ${article(kind)} ${kind}`,
      query: writeParameters,
      response: this.#schema,
      codes: [200, 201, 202],
      body: { schema: this.#schema, types: responseTypes, isRequired: true },
    })
  }

  deleteCollection(): object {
    const { kind } = this.#kind
    return this.#operation('delete', 'deletecollection', {
      action: 'deletecollection',
      id: `delete${this.#groupVersion}Collection${this.#target}`,
      description: `delete collection of ${kind}`,
      query: deleteCollectionParameters,
      response: `${meta}.Status`,
      codes: [200],
      body: { schema: `${meta}.DeleteOptions`, types: responseTypes, isRequired: false },
    })
  }

  read(suffix: string): object {
    return this.#operation('get', 'get', {
      action: 'get',
      id: this.#id('read', suffix),
      description: `read ${this.#what(suffix)}`,
      response: this.#schema,
      codes: [200],
    })
  }

  replace(suffix: string): object {
    return this.#operation('put', 'update', {
      action: 'put',
      id: this.#id('replace', suffix),
      description: `replace ${this.#what(suffix)}`,
      query: writeParameters,
      response: this.#schema,
      codes: [200, 201],
      body: { schema: this.#schema, types: responseTypes, isRequired: true },
    })
  }

  patch(suffix: string): object {
    const types = this.#kind.isCustom ? patchTypes : strategicPatchTypes
    return this.#operation('patch', 'patch', {
      action: 'patch',
      id: this.#id('patch', suffix),
      description: `partially update ${this.#what(suffix)}`,
      query: patchParameters,
      response: this.#schema,
      codes: [200, 201],
      body: { schema: `${meta}.Patch`, types, isRequired: true },
    })
  }

  delete(): object {
    const { kind } = this.#kind
    return this.#operation('delete', 'delete', {
      action: 'delete',
      id: this.#id('delete', ''),
      description: `delete ${article(kind)} ${kind}`,
      query: deleteParameters,
      response: `${meta}.Status`,
      codes: [200, 202],
      body: { schema: `${meta}.DeleteOptions`, types: responseTypes, isRequired: false },
    })
  }

  get #groupVersion(): string {
    const { group, version } = this.#kind
    const words = (group || 'core').replace(/\.k8s\.io$/, '').split('.')
    return [...words, version].map(capitalized).join('')
  }

  get #target(): string {
    return `${this.#kind.namespaced ? 'Namespaced' : ''}${this.#kind.kind}`
  }

  get #tag(): string {
    const [first = '', ...words] = (this.#kind.group || 'core').replace(/\.k8s\.io$/, '').split('.')
    return `${first}${words.map(capitalized).join('')}_${this.#kind.version}`
  }

  #id(verb: string, suffix: string): string {
    return `${verb}${this.#groupVersion}${this.#target}${suffix}`
  }

  #what(suffix: string): string {
    return `${suffix ? `${suffix.toLowerCase()} of ` : ''}the specified ${this.#kind.kind}`
  }

  #operation(method: string, verb: Verb, spec: OperationSpec): object {
    if (!this.#kind.verbs.includes(verb)) return {}
    return { [method]: this.#version === 3 ? this.#operation3(spec) : this.#operation2(spec) }
  }

  #common({ action, id, description }: OperationSpec): Operation {
    const { group, version, kind } = this.#shown
    return {
      description,
      tags: [this.#tag],
      operationId: id,
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group, version, kind },
    }
  }

  #operation3(spec: OperationSpec): Operation {
    const { query, response, codes, types = responseTypes, body } = spec
    const content = (schema: string, of: readonly string[]) =>
      Object.fromEntries(of.map(type => [type, { schema: { $ref: `#/components/schemas/${schema}` } }]))
    return {
      ...this.#common(spec),
      ...(query && { parameters: this.parameters(query) }),
      ...(body && { requestBody: { ...(body.isRequired && { required: true }), content: content(body.schema, body.types) } }),
      responses: {
        ...Object.fromEntries(codes.map(code => [code, { description: codeTexts[code], content: content(response, types) }])),
        401: { description: 'Unauthorized' },
      },
    }
  }

  #operation2(spec: OperationSpec): Operation {
    const { query, response, codes, types = responseTypes, body } = spec
    const schema = (name: string) => ({ $ref: `#/definitions/${name}` })
    const inBody = body ? [{ name: 'body', in: 'body', ...(body.isRequired && { required: true }), schema: schema(body.schema) }] : []
    const parameters = [...inBody, ...(query ? this.parameters(query) : [])]
    return {
      ...this.#common(spec),
      consumes: body?.types ?? ['*/*'],
      produces: types,
      schemes: ['https'],
      ...(parameters.length > 0 && { parameters }),
      responses: {
        ...Object.fromEntries(codes.map(code => [code, { description: codeTexts[code], schema: schema(response) }])),
        401: { description: 'Unauthorized' },
      },
    }
  }
}

const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
const article = (noun: string): string => (/^[AEIOU]/.test(noun) ? 'an' : 'a')
