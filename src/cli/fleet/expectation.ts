import { type Stack, type StackState, stackMessage, stackState } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'

/** On a Stack of the sample: its expected state. Default: Ready. */
export const expectedStateAnnotation = 'example.oarlock.dev/expect'

/**
 * - `reached`: the Stack is in its expected state, or it is Ready because a user approved the plan that was expected to wait
 * - `skipped`: the engine of the Stack, or of a Stack that it depends on, is not installed on this machine
 * - `pending`: neither, so far
 */
export type StackOutcome = { kind: 'reached' | 'skipped' | 'pending'; expected: string; state: StackState; reason: string }

/** The outcome of every Stack of a fleet, by key (`namespace/name`). */
export function fleetOutcomes(stacks: readonly Stack[]): Map<string, StackOutcome> {
  const byKey = new Map(stacks.map(stack => [objectKey(stack), stack]))
  return new Map(stacks.map(stack => [objectKey(stack), outcomeOf(stack, byKey)]))
}

function outcomeOf(stack: Stack, byKey: ReadonlyMap<string, Stack>): StackOutcome {
  const expected = stack.metadata.annotations?.[expectedStateAnnotation] ?? 'Ready'
  const state = stackState(stack)
  const { reason: conditionReason, message } = stackMessage(stack)
  const reason = message ? `${conditionReason}: ${message}` : conditionReason
  // A user has approved the plan, for example after the last start of the sample.
  const isApproved = expected === 'AwaitingApproval' && state === 'Ready'
  if (state === expected || isApproved) return { kind: 'reached', expected, state, reason }
  const blocker = findWithoutEngine(stack, byKey, new Set())
  if (blocker === undefined) return { kind: 'pending', expected, state, reason }
  return { kind: 'skipped', expected, state, reason: blocker === stack ? reason : `depends on ${blocker.metadata.name}: ${reason}` }
}

/** The Stack whose missing engine blocks `stack`: itself, or one that it depends on. `seen` ends cycles. */
function findWithoutEngine(stack: Stack, byKey: ReadonlyMap<string, Stack>, seen: Set<Stack>): Stack | undefined {
  if (seen.has(stack)) return undefined
  seen.add(stack)
  if (stackState(stack) === 'EngineNotFound') return stack
  for (const name of dependenciesOf(stack)) {
    const dependency = byKey.get(objectKey({ metadata: { name, namespace: stack.metadata.namespace } }))
    const blocker = dependency && findWithoutEngine(dependency, byKey, seen)
    if (blocker) return blocker
  }
  return undefined
}

function dependenciesOf({ spec }: Stack): string[] {
  const fromOutputs = (spec.variablesFrom ?? []).flatMap(({ stackRef }) => (stackRef ? [stackRef.name] : []))
  return [...(spec.dependsOn ?? []).map(({ name }) => name), ...fromOutputs]
}
