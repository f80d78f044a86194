import { type Stack, stackResource, type VariablesFrom } from '../../../api/index.ts'
import { configMapResource } from '../../../kubernetes/client/index.ts'
import type { Resource } from '../../../kubernetes/object/index.ts'
import type { StackVariables } from '../../protocol/index.ts'
import { isForbidden, isNotFound } from '../error-response.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { type ReferencedData, variableSources } from './variable-sources.ts'

/** The variables of a Stack with where they come from. ConfigMaps and other Stacks are read with the rights of the user, Secrets are not. */
export async function stackVariables(request: StackRequest): Promise<StackVariables> {
  const { client, namespace } = request
  const { spec } = await readStack(request)
  const names = (nameOf: (from: VariablesFrom) => string | undefined) => (spec.variablesFrom ?? []).flatMap(from => nameOf(from) ?? [])
  const [configMaps, stacks] = await Promise.all([
    readAll(
      names(({ configMapRef }) => configMapRef?.name),
      async name => (await client.resource(configMapResource).get(name, { namespace })).data ?? {},
    ),
    readAll(
      names(({ stackRef }) => stackRef?.name),
      async name =>
        (await client.resource(stackResource as Resource<Pick<Stack, 'spec' | 'status'>>).get(name, { namespace })).status?.outputs ?? {},
    ),
  ])
  return variableSources(spec, { configMaps, stacks })
}

async function readAll(names: readonly string[], read: (name: string) => Promise<Readonly<Record<string, unknown>>>) {
  const entries = [...new Set(names)].map(async (name): Promise<[string, ReferencedData]> => {
    try {
      return [name, { values: await read(name) }]
    } catch (error) {
      if (isForbidden(error)) return [name, { problem: 'you may not read it' }]
      if (isNotFound(error)) return [name, { problem: 'it does not exist' }]
      throw error
    }
  })
  return new Map(await Promise.all(entries))
}
