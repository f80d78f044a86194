import { applyJsonPatch, applyMergePatch, applyStrategicPatch, badRequest, isJsonObject, type Json } from '../../object/index.ts'
import { parseJson, unsupportedMediaType } from './body.ts'
import type { Call } from './call.ts'
import { checkMerged, checkSize } from './check-size.ts'

const patchTypes = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

/** The patched object. `liveLength` is the length of the JSON of the live object. */
type Change = (live: Json, liveLength: number) => Json

/**
 * The patch of a call as a function of the live object.
 * @throws {StatusError} UnsupportedMediaType, or BadRequest for an invalid patch.
 */
export function patchFunction(call: Call): Change {
  switch (call.input.contentType) {
    case 'application/json-patch+json': {
      const operations = parseJson(call.input.body)
      return live => checkSize(applyJsonPatch(live, operations))
    }
    case 'application/merge-patch+json': {
      const merge = parsePatchObject(call)
      return (live, liveLength) => checkMerged(applyMergePatch(live, merge), liveLength + call.input.body.length)
    }
    case 'application/strategic-merge-patch+json': {
      const { schema, isCustom } = call.target.kind
      // Custom resources have no patch strategies.
      if (isCustom) throw unsupportedMediaType(patchTypes.filter(type => !type.includes('strategic')))
      const merge = parsePatchObject(call)
      return (live, liveLength) => checkMerged(applyStrategicPatch(live, merge, schema), liveLength + call.input.body.length)
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
