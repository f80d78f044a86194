import { badRequest, StatusError } from '../../kube/index.ts'

/** How a client wants its answer. `key` names it in caches of encoded events. */
export type Representation = {
  readonly form: 'object' | 'table' | 'partial'
  readonly syntax: 'json' | 'yaml'
  /** Tables: what each row carries of its object. */
  readonly include: 'None' | 'Metadata' | 'Object'
  readonly key: string
  readonly contentType: string
}

const served = ['application/json', 'application/yaml']

function representation(
  form: Representation['form'],
  syntax: Representation['syntax'],
  include: Representation['include'],
): Representation {
  const contentType = syntax === 'json' ? 'application/json' : 'application/yaml'
  return { form, syntax, include, key: `${form}/${syntax}/${include}`, contentType }
}

export const plainJson: Representation = representation('object', 'json', 'Metadata')

const known = new Map<string, Representation>()
const maxKnown = 500

/**
 * Reads an Accept header (absent: JSON). The first media type that is served wins, so a client that prefers protobuf
 * and names JSON behind it gets JSON.
 * @throws {StatusError} NotAcceptable naming what is served.
 */
export function negotiate(accept: string | undefined, includeObject: string | undefined): Representation {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return plainJson
  const cacheKey = `${includeObject ?? ''}|${accept}`
  const cached = known.get(cacheKey)
  if (cached) return cached
  const found = choose(accept, includeObject)
  if (!found) {
    throw new StatusError('NotAcceptable', `only the following media types are accepted: ${served.join(', ')}`)
  }
  if (known.size >= maxKnown) known.clear()
  if (accept.length < 1_000) known.set(cacheKey, found)
  return found
}

function choose(accept: string, includeObject: string | undefined): Representation | undefined {
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim())
    let syntax: Representation['syntax'] | undefined
    if (type === 'application/json' || type === '*/*' || type === 'application/*') syntax = 'json'
    else if (type === 'application/yaml') syntax = 'yaml'
    if (!syntax) continue
    const as = parameters.find(parameter => parameter.startsWith('as='))?.slice(3)
    const group = parameters.find(parameter => parameter.startsWith('g='))?.slice(2)
    const version = parameters.find(parameter => parameter.startsWith('v='))?.slice(2)
    if (as === undefined) return syntax === 'json' ? plainJson : representation('object', syntax, 'Metadata')
    if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) continue
    if (as === 'Table') {
      const include = includeObject || 'Metadata'
      if (include !== 'None' && include !== 'Object' && include !== 'Metadata') {
        throw badRequest(
          `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(include.slice(0, 40))}: must be 'Metadata', 'Object', 'None', or empty`,
        )
      }
      return representation('table', syntax, include)
    }
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') return representation('partial', syntax, 'Metadata')
  }
  return undefined
}
