/**
 * @module rest: the verbs. Start reading at `call.ts`, then `write.ts` and `mutate.ts`.
 * In: a routed and authorized request (`Call`). Out: durable changes and a response, or a thrown StatusError.
 * Not here: routes and bodies (http/), the rules of a kind (registry/), background work (lifecycle/).
 */
import { bindPod } from './bind-pod.ts'
import { type Call, methodNotAllowed, type Services } from './call.ts'
import { remove, removeCollection } from './delete.ts'
import { get, list } from './read.ts'
import { scale } from './scale.ts'
import { watch } from './watch.ts'
import { create, patch, update } from './write.ts'

export {
  admit,
  type Call,
  type Caller,
  type GatewayWatch,
  keyOf,
  methodNotAllowed,
  type Services,
  sendObject,
  type Target,
  withKind,
} from './call.ts'
export { type Decoded, decodeBody } from './decode.ts'
export { type DeleteOptions, deleteEntry, type Propagation } from './delete.ts'
export { isDeletionComplete } from './metadata.ts'
export { mutate, readEntry, storedForm } from './mutate.ts'
export { PagedLists } from './paged-lists.ts'
export { parseAsJson } from './parse-yaml.ts'
export { mapUnread } from './watch.ts'
export { readWriteOptions } from './write-options.ts'
export { isLongYaml, YamlParserThread } from './yaml-parser-thread.ts'

/** Executes one call and sends its response. */
export function perform(services: Services, call: Call): Promise<void> | undefined {
  if (call.target.subresource === 'scale' && call.target.kind.scale) return scale(services, call, call.target.kind.scale)
  if (call.target.subresource === 'binding') return bindPod(services, call)
  switch (call.target.verb) {
    case 'get':
      get(services, call)
      return undefined
    case 'list':
      return list(services, call)
    case 'watch':
      return watch(services, call)
    case 'create':
      return create(services, call)
    case 'update':
      return update(services, call)
    case 'patch':
      return patch(services, call)
    case 'delete':
      return remove(services, call)
    case 'deletecollection':
      return removeCollection(services, call)
    default:
      throw methodNotAllowed()
  }
}
