import { badRequest, StatusError } from '../../object/index.ts'

/** The negotiated form of a response. `key` identifies it in caches of encoded events. */
export type Representation = {
  readonly form: 'object' | 'table' | 'partial'
  readonly syntax: 'json' | 'yaml'
  /** For Tables: the part of the object that each row includes. */
  readonly include: 'None' | 'Metadata' | 'Object'
  /** The version of `meta.k8s.io`, for Tables and partial metadata. */
  readonly version: 'v1' | 'v1beta1'
  /** For partial metadata: true if the client asked for a list. Undefined for other forms. */
  readonly isList?: boolean
  readonly key: string
  readonly contentType: string
}

const served = ['application/json', 'application/yaml']

function representation(
  form: Representation['form'],
  syntax: Representation['syntax'],
  include: Representation['include'] = 'Metadata',
  version: Representation['version'] = 'v1',
  isList?: boolean,
): Representation {
  const contentType = syntax === 'json' ? 'application/json' : 'application/yaml'
  return { form, syntax, include, version, isList, key: `${form}/${syntax}/${include}/${version}`, contentType }
}

const plainJson: Representation = representation('object', 'json')

const known = new Map<string, Representation>()
const maxKnown = 500

/**
 * Negotiates with an Accept header (absent or empty: JSON). The supported media type with the highest quality is chosen, so a client
 * that prefers protobuf over JSON gets JSON.
 * @throws {StatusError} NotAcceptable with the supported types.
 */
export function negotiate(accept: string | undefined, includeObject: string | undefined): Representation {
  if (accept === undefined || accept === '*/*' || accept === 'application/json' || accept === '') return plainJson
  const cacheKey = `${includeObject ?? ''}|${accept}`
  const cached = known.get(cacheKey)
  if (cached) return cached
  const found = choose(accept, includeObject)
  if (!found) throw notAcceptable(acceptRanges(accept).some(({ type }) => syntaxOf(type)))
  if (known.size >= maxKnown) known.clear()
  if (accept.length < 1_000) known.set(cacheKey, found)
  return found
}

/**
 * The 406 for an Accept header.
 * @param isKnown a type in it is supported, but not with its parameters.
 */
export function notAcceptable(isKnown: boolean): StatusError {
  const types = served.join(', ')
  if (isKnown) return new StatusError('NotAcceptable', `only the following media types are accepted: ${types}`)
  return new StatusError('NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${types}`, { details: {} })
}

type AcceptRange = { readonly type: string; readonly parameters: readonly string[]; readonly quality: number }

/** The media ranges of an Accept header, sorted by quality. */
export function acceptRanges(accept: string): AcceptRange[] {
  const ranges = accept.split(',').map(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim())
    const quality = Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
    return { type: type.toLowerCase(), parameters, quality: Number.isFinite(quality) ? quality : 1 }
  })
  return ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)
}

/** The syntax that a media range selects, if any. */
export function syntaxOf(type: string): Representation['syntax'] | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  return type === 'application/yaml' ? 'yaml' : undefined
}

function choose(accept: string, includeObject: string | undefined): Representation | undefined {
  for (const { type, parameters } of acceptRanges(accept)) {
    const syntax = syntaxOf(type)
    if (!syntax) continue
    const as = parameters.find(parameter => parameter.startsWith('as='))?.slice(3)
    const group = parameters.find(parameter => parameter.startsWith('g='))?.slice(2)
    const version = parameters.find(parameter => parameter.startsWith('v='))?.slice(2)
    if (as === undefined) return syntax === 'json' ? plainJson : representation('object', syntax)
    if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) continue
    if (as === 'Table') {
      const include = includeObject || 'Metadata'
      if (include !== 'None' && include !== 'Object' && include !== 'Metadata') {
        throw badRequest(
          `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(include.slice(0, 40))}: must be 'Metadata', 'Object', 'None', or empty`,
        )
      }
      return representation('table', syntax, include, version)
    }
    if (as === 'PartialObjectMetadata') return representation('partial', syntax, 'Metadata', version, false)
    if (as === 'PartialObjectMetadataList') return representation('partial', syntax, 'Metadata', version, true)
  }
  return undefined
}
