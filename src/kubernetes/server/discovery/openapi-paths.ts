import { type Kind, scaleKindFor, tokenRequestKind, type Verb } from '../registry/index.ts'
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

/** How this server's paths are said in OpenAPI 3 or in Swagger 2. */
export type OpenApiVersion = 3 | 2

const answerTypes = ['application/json', 'application/yaml']
const streamTypes = [...answerTypes, 'application/json;stream=watch']
const patchTypes = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml']
const strategicPatchTypes = patchTypes.toSpliced(2, 0, 'application/strategic-merge-patch+json')
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The paths of one kind: its collection, its objects, their subresources. */
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
  // A question has no name that it could be found by.
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
  if (group === '' && plural === 'namespaces') {
    paths[`${collection}/{name}/finalize`] = { ...writer.replace('Finalize'), parameters: writer.parameters(one) }
  }
  return paths
}

type Said = {
  action: string
  id: string
  description: string
  query?: readonly Parameter[]
  answer: string
  codes: readonly (200 | 201 | 202)[]
  types?: readonly string[]
  body?: { schema: string; types: readonly string[]; isRequired: boolean }
}

const codeTexts = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

/** Writes operations as Kubernetes says them, so that what generators make of them has the names that people know. */
class OperationWriter {
  readonly #kind: Kind
  readonly #dialect: OpenApiVersion
  readonly #shown: Kind
  readonly #schema: string

  /** @param shown what is read and written there, when that is not the kind itself. */
  constructor(kind: Kind, dialect: OpenApiVersion, shown?: Kind) {
    this.#kind = kind
    this.#dialect = dialect
    this.#shown = shown ?? kind
    this.#schema = shown?.typeName ?? (shown ? scaleSchemaName : schemaName(kind))
  }

  parameters(of: readonly Parameter[]): object[] {
    return of.map(parameter => {
      const { name, location, type, description } = parameter
      const typed = this.#dialect === 3 ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true }
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
    return this.#say('get', 'list', {
      action: 'list',
      id: operationId,
      description,
      query,
      answer: `${this.#schema}List`,
      codes: [200],
      types: streamTypes,
    })
  }

  create(suffix = ''): object {
    const { kind } = this.#kind
    return this.#say('post', 'create', {
      action: 'post',
      id: this.#id('create', suffix),
      description: suffix ? `create ${suffix.toLowerCase()} of ${article(kind)} ${kind}` : `create ${article(kind)} ${kind}`,
      query: writeParameters,
      answer: this.#schema,
      codes: [200, 201, 202],
      body: { schema: this.#schema, types: answerTypes, isRequired: true },
    })
  }

  deleteCollection(): object {
    const { kind } = this.#kind
    return this.#say('delete', 'deletecollection', {
      action: 'deletecollection',
      id: `delete${this.#groupVersion}Collection${this.#target}`,
      description: `delete collection of ${kind}`,
      query: deleteCollectionParameters,
      answer: `${meta}.Status`,
      codes: [200],
      body: { schema: `${meta}.DeleteOptions`, types: answerTypes, isRequired: false },
    })
  }

  read(suffix: string): object {
    return this.#say('get', 'get', {
      action: 'get',
      id: this.#id('read', suffix),
      description: `read ${this.#what(suffix)}`,
      answer: this.#schema,
      codes: [200],
    })
  }

  replace(suffix: string): object {
    return this.#say('put', 'update', {
      action: 'put',
      id: this.#id('replace', suffix),
      description: `replace ${this.#what(suffix)}`,
      query: writeParameters,
      answer: this.#schema,
      codes: [200, 201],
      body: { schema: this.#schema, types: answerTypes, isRequired: true },
    })
  }

  patch(suffix: string): object {
    const types = this.#kind.isCustom ? patchTypes : strategicPatchTypes
    return this.#say('patch', 'patch', {
      action: 'patch',
      id: this.#id('patch', suffix),
      description: `partially update ${this.#what(suffix)}`,
      query: patchParameters,
      answer: this.#schema,
      codes: [200, 201],
      body: { schema: `${meta}.Patch`, types, isRequired: true },
    })
  }

  delete(): object {
    const { kind } = this.#kind
    return this.#say('delete', 'delete', {
      action: 'delete',
      id: this.#id('delete', ''),
      description: `delete ${article(kind)} ${kind}`,
      query: deleteParameters,
      answer: `${meta}.Status`,
      codes: [200, 202],
      body: { schema: `${meta}.DeleteOptions`, types: answerTypes, isRequired: false },
    })
  }

  get #groupVersion(): string {
    const { group, version } = this.#kind
    const words = (group || 'core').replace(/\.k8s\.io$/, '').split('.')
    return [...words, version].map(capitalised).join('')
  }

  get #target(): string {
    return `${this.#kind.namespaced ? 'Namespaced' : ''}${this.#kind.kind}`
  }

  get #tag(): string {
    const [first = '', ...words] = (this.#kind.group || 'core').replace(/\.k8s\.io$/, '').split('.')
    return `${first}${words.map(capitalised).join('')}_${this.#kind.version}`
  }

  #id(verb: string, suffix: string): string {
    return `${verb}${this.#groupVersion}${this.#target}${suffix}`
  }

  #what(suffix: string): string {
    return `${suffix ? `${suffix.toLowerCase()} of ` : ''}the specified ${this.#kind.kind}`
  }

  #say(method: string, verb: Verb, said: Said): object {
    if (!this.#kind.verbs.includes(verb)) return {}
    return { [method]: this.#dialect === 3 ? this.#operation3(said) : this.#operation2(said) }
  }

  #common({ action, id, description }: Said): Operation {
    const { group, version, kind } = this.#shown
    return {
      description,
      tags: [this.#tag],
      operationId: id,
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group, version, kind },
    }
  }

  #operation3(said: Said): Operation {
    const { query, answer, codes, types = answerTypes, body } = said
    const content = (schema: string, of: readonly string[]) =>
      Object.fromEntries(of.map(type => [type, { schema: { $ref: `#/components/schemas/${schema}` } }]))
    return {
      ...this.#common(said),
      ...(query && { parameters: this.parameters(query) }),
      ...(body && { requestBody: { ...(body.isRequired && { required: true }), content: content(body.schema, body.types) } }),
      responses: {
        ...Object.fromEntries(codes.map(code => [code, { description: codeTexts[code], content: content(answer, types) }])),
        401: { description: 'Unauthorized' },
      },
    }
  }

  #operation2(said: Said): Operation {
    const { query, answer, codes, types = answerTypes, body } = said
    const schema = (name: string) => ({ $ref: `#/definitions/${name}` })
    const inBody = body ? [{ name: 'body', in: 'body', ...(body.isRequired && { required: true }), schema: schema(body.schema) }] : []
    const parameters = [...inBody, ...(query ? this.parameters(query) : [])]
    return {
      ...this.#common(said),
      consumes: body?.types ?? ['*/*'],
      produces: types,
      schemes: ['https'],
      ...(parameters.length > 0 && { parameters }),
      responses: {
        ...Object.fromEntries(codes.map(code => [code, { description: codeTexts[code], schema: schema(answer) }])),
        401: { description: 'Unauthorized' },
      },
    }
  }
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
const article = (noun: string): string => (/^[AEIOU]/.test(noun) ? 'an' : 'a')
