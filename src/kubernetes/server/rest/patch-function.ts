import { applyJsonPatch, applyMergePatch, badRequest, isJsonObject, type Json } from '../../object/index.ts'
import { parseJson, unsupportedMediaType } from './body.ts'
import type { Call } from './call.ts'
import { checkSize } from './check-size.ts'
import { applyStrategicPatch } from './strategic-merge.ts'

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

/**
 * The patch of a call as a function of the live object.
 * @throws {StatusError} UnsupportedMediaType, or BadRequest for an invalid patch.
 */
export function patchFunction(call: Call): (live: Json) => Json {
  switch (call.input.contentType) {
    case 'application/json-patch+json': {
      const operations = parseJson(call.input.body)
      return live => checkSize(applyJsonPatch(live, operations))
    }
    case 'application/merge-patch+json': {
      const merge = parsePatchObject(call)
      return live => checkSize(applyMergePatch(live, merge))
    }
    case 'application/strategic-merge-patch+json': {
      const { schema, isCustom } = call.target.kind
      // Custom resources have no patch strategies.
      if (isCustom) throw unsupportedMediaType(patchTypes.filter(type => !type.includes('strategic')))
      const merge = parsePatchObject(call)
      return live => checkSize(applyStrategicPatch(live, merge, schema))
    }
    default:
      throw unsupportedMediaType(patchTypes)
  }
}

function parsePatchObject(call: Call): Json {
  const patch = parseJson(call.input.body)
  if (!isJsonObject(patch)) throw badRequest('the patch must be a JSON object')
  return patch as Json
}
