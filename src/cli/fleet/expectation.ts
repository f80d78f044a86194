import type { Stack } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { type StackState, stackMessage, stackState } from './stack-state.ts'

/** On a Stack of the sample: the state it is meant to reach. Default: Ready. */
export const expectAnnotation = 'example.oarlock.dev/expect'

/**
 * - `reached`: it stands where its annotation says
 * - `skipped`: it cannot run on this machine, because its engine, or that of a Stack it waits for, is not installed
 * - `waiting`: neither, so far
 */
export type Verdict = { kind: 'reached' | 'skipped' | 'waiting'; expected: string; state: StackState; why: string }

/** Judges every Stack of a fleet, by key (`namespace/name`). */
export function judgeFleet(stacks: readonly Stack[]): Map<string, Verdict> {
  const byKey = new Map(stacks.map(stack => [objectKey(stack), stack]))
  return new Map(stacks.map(stack => [objectKey(stack), judge(stack, byKey)]))
}

function judge(stack: Stack, byKey: ReadonlyMap<string, Stack>): Verdict {
  const expected = stack.metadata.annotations?.[expectAnnotation] ?? 'Ready'
  const state = stackState(stack)
  const { reason, message } = stackMessage(stack)
  const why = message ? `${reason}: ${message}` : reason
  if (state === expected) return { kind: 'reached', expected, state, why }
  const blocker = withoutEngine(stack, byKey, new Set())
  if (blocker === undefined) return { kind: 'waiting', expected, state, why }
  return { kind: 'skipped', expected, state, why: blocker === stack ? why : `waits for ${blocker.metadata.name}: ${why}` }
}

/** The Stack whose missing engine holds `stack` up: itself, or one it depends on. `seen` ends cycles. */
function withoutEngine(stack: Stack, byKey: ReadonlyMap<string, Stack>, seen: Set<Stack>): Stack | undefined {
  if (seen.has(stack)) return undefined
  seen.add(stack)
  if (stackState(stack) === 'EngineNotFound') return stack
  for (const name of dependenciesOf(stack)) {
    const dependency = byKey.get(objectKey({ metadata: { name, namespace: stack.metadata.namespace } }))
    const blocker = dependency && withoutEngine(dependency, byKey, seen)
    if (blocker) return blocker
  }
  return undefined
}

function dependenciesOf({ spec }: Stack): string[] {
  const fromOutputs = (spec.variablesFrom ?? []).flatMap(({ stackRef }) => (stackRef ? [stackRef.name] : []))
  return [...(spec.dependsOn ?? []).map(({ name }) => name), ...fromOutputs]
}
