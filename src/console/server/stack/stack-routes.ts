import { StatusError } from '../../../kubernetes/object/index.ts'
import { apiPath } from '../../protocol/index.ts'
import { editYaml, readYaml } from './edit-yaml.ts'
import { stackEvents } from './stack-events.ts'
import { stackGraph } from './stack-graph.ts'
import { revealOutput, stackOutputs } from './stack-outputs.ts'
import type { StackRequest } from './stack-request.ts'
import { stackResources } from './stack-resources.ts'
import { stackVariables } from './stack-variables.ts'
import { stateDiff, stateVersions } from './state-versions.ts'

/** By method and what follows `stacks/NAMESPACE/NAME/`. */
const routes: Readonly<Record<string, (request: StackRequest) => Promise<unknown>>> = {
  'GET resources': stackResources,
  'GET outputs': request => (request.rest.length === 0 ? stackOutputs(request) : revealOutput(request)),
  'GET variables': stackVariables,
  'GET versions': stateVersions,
  'GET diff': stateDiff,
  'GET events': stackEvents,
  'GET graph': stackGraph,
  'GET yaml': readYaml,
  'POST yaml': editYaml,
}

/** Serves one part of the page of a Stack. @throws {StatusError} NotFound for a path that is none. */
export async function serveStack(
  method: string,
  [namespace = '', name = '', section = '', ...rest]: readonly string[],
  request: Omit<StackRequest, 'namespace' | 'name' | 'rest'>,
): Promise<unknown> {
  const route = Object.hasOwn(routes, `${method} ${section}`) ? routes[`${method} ${section}`] : undefined
  if (!route || namespace === '' || name === '')
    throw new StatusError('NotFound', `the console has no ${method} ${apiPath}stacks/NAMESPACE/NAME/${section}`)
  return await route({ ...request, namespace, name, rest })
}
