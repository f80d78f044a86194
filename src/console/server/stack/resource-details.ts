import { badRequest, StatusError } from '../../../kubernetes/object/index.ts'
import type { ResourceDetails } from '../../protocol/index.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { currentOf, numberIn, versionOf } from './state-versions.ts'
import { expectManaged, StoredState, sizeOf, stateKindOf } from './stored-state.ts'

/** `address` in the query is that of a resource, exactly as the list of resources has it; `version` that of the state, the current one without it. */
export async function resourceDetails(request: StackRequest): Promise<ResourceDetails> {
  const stack = await readStack(request)
  expectManaged(stack)
  const address = request.query.get('address') ?? ''
  if (address === '') throw badRequest('address must be that of a resource')
  const number = numberIn(request.query, 'version')
  const state = new StoredState(request)
  const versions = await state.versions()
  const version = number === undefined ? currentOf(versions, stateKindOf(stack)) : versionOf(versions, number)
  const found =
    version &&
    version.size > 0 &&
    (await request.tasks.withStates(sizeOf(version), async run => await run('attributesOf', await state.read(version), address)))
  if (version && found) return { ...found, version: version.version }
  const what = version ? `version ${version.version} of the state` : 'the state'
  throw new StatusError('NotFound', `${what} of stack/${request.namespace}/${request.name} has no resource ${JSON.stringify(address)}`)
}
