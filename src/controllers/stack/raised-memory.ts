import { applyPolicy, type Run, type RunSpec, raisedMemory, type Stack } from '../../api/index.ts'

/**
 * The spec that the next Run freezes. After OutOfMemory its memory limit is raised; later Runs keep the raised limit until the
 * Stack's spec changes. It is raised to what administrators allowed for that Run at most.
 */
export function withRaisedMemory({ spec, metadata }: Stack, runs: readonly Run[]): RunSpec['stack'] {
  const last = runs.findLast(run => run.spec.stackRef.generation === metadata.generation)
  if (!last || spec.resources?.autoRaise === undefined || spec.resources.memory === undefined) return spec
  const previous = resourcesOf(last)
  const memory = (last.status?.reason === 'OutOfMemory' && raisedMemory(previous)) || previous?.memory
  return memory === undefined || memory === spec.resources.memory ? spec : { ...spec, resources: { ...spec.resources, memory } }
}

function resourcesOf({ spec: { stack, policy } }: Run): RunSpec['stack']['resources'] {
  return policy ? applyPolicy(stack, [{ origin: 'its assignment', policy }]).resources : stack.resources
}
