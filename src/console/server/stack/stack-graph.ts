import { stackState } from '../../../api/index.ts'
import { dependencyNames } from '../../../controllers/stack/index.ts'
import type { StackGraph } from '../../protocol/index.ts'
import { dependencyGraph } from './dependency-graph.ts'
import { readStack, type StackRequest } from './stack-request.ts'

/** What a Stack needs and what needs it, of what the user may see. */
export async function stackGraph(request: StackRequest): Promise<StackGraph> {
  const { projections, visibility, namespace, name } = request
  const stack = await readStack(request)
  const visible = await visibility.of('stacks', () => [namespace])
  if (!visible.all && !visible.namespaces.has(namespace)) {
    const problem = `you may not list the Stacks in ${namespace}`
    const needed = dependencyNames(stack.spec)
    return {
      nodes: [...needed.map(each => ({ name: each, layer: -1, problem })), { name, layer: 0, state: stackState(stack) }],
      edges: needed.map(to => ({ from: name, to, via: [] })),
      ...{ more: 0, problem: `${problem}: only what this Stack names itself is shown` },
    }
  }
  const stacks = projections.stacksIn(namespace).map(each => [each.metadata.name, { spec: each.spec, state: stackState(each) }] as const)
  return dependencyGraph(name, new Map([...stacks, [name, { spec: stack.spec, state: stackState(stack) }]]))
}
