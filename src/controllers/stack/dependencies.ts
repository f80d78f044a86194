import type { Stack, StackSpec } from '../../api/index.ts'
import { type Condition, findCondition } from '../../kubernetes/object/index.ts'
import { areApplied } from './inputs.ts'

/** A Stack that another one depends on; `stack` is undefined if it does not exist. */
export type Dependency = { readonly name: string; readonly stack: Stack | undefined }

/** Why a Stack must wait for its dependencies. */
export type DependencyGate = { readonly reason: 'DependencyNotFound' | 'DependencyNotReady'; readonly message: string }

/** The Stacks (same namespace) that must be Ready first: `dependsOn` and every `variablesFrom[].stackRef`, in order, without duplicates. */
export function dependencyNames(spec: StackSpec): string[] {
  const names = (spec.dependsOn ?? []).map(({ name }) => name)
  for (const { stackRef } of spec.variablesFrom ?? []) if (stackRef) names.push(stackRef.name)
  return [...new Set(names)]
}

/**
 * The shortest cycle that `name` is part of, as a path that starts and ends with it, such as `['a', 'b', 'a']`.
 * A Stack that only depends on a cycle is not part of it. `specOf` returns undefined for a Stack that does not exist.
 */
export function findCycle(name: string, specOf: (name: string) => StackSpec | undefined): string[] | undefined {
  const predecessors = new Map<string, string>()
  let frontier = [name]
  while (frontier.length > 0) {
    const next: string[] = []
    for (const from of frontier) {
      const spec = specOf(from)
      if (!spec) continue
      for (const to of dependencyNames(spec)) {
        if (to === name) {
          const path = [name]
          for (let at: string | undefined = from; at !== undefined && at !== name; at = predecessors.get(at)) path.unshift(at)
          return [name, ...path]
        }
        if (predecessors.has(to)) continue
        predecessors.set(to, from)
        next.push(to)
      }
    }
    frontier = next
  }
  return undefined
}

/**
 * The Stacks that depend on the Stack, and that are not being deleted: its destruction waits for them. Those of a cycle do not wait for each other.
 * @param others the Stacks of its namespace.
 * @param together uids of those that are destroyed together with it.
 */
export function dependentsOf({ metadata }: Pick<Stack, 'metadata'>, others: readonly Stack[], together: ReadonlySet<string>): string[] {
  const names = others
    .filter(
      other =>
        !other.metadata.deletionTimestamp && !together.has(other.metadata.uid) && dependencyNames(other.spec).includes(metadata.name),
    )
    .map(other => other.metadata.name)
  if (names.length === 0) return names
  const specs = new Map(others.map(other => [other.metadata.name, other.spec]))
  const cycle = findCycle(metadata.name, name => specs.get(name))
  return names.filter(name => !cycle?.includes(name))
}

/** Why a Stack must wait for its dependencies; undefined when all are Ready. Missing ones take precedence over those that are not Ready. */
export function dependencyGate(spec: StackSpec, dependencies: readonly Dependency[]): DependencyGate | undefined {
  const missing = dependencies.filter(({ stack }) => !stack).map(({ name }) => name)
  if (missing.length > 0) {
    const causes = missing.map(name => `${fieldOf(spec, name)}: Stack "${name}" does not exist in this namespace`).join('; ')
    return { reason: 'DependencyNotFound', message: `${causes}; create it or correct the name` }
  }
  const notReady = dependencies.flatMap(({ name, stack }) => {
    const reason = notReadyReason(stack!)
    return reason === undefined ? [] : [`${name} (${reason})`]
  })
  return notReady.length === 0 ? undefined : { reason: 'DependencyNotReady', message: `Waiting for ${notReady.join(', ')}` }
}

/** The first field that names a dependency. */
function fieldOf({ dependsOn = [], variablesFrom = [] }: StackSpec, name: string): string {
  const index = dependsOn.findIndex(entry => entry.name === name)
  if (index >= 0) return `spec.dependsOn[${index}].name`
  return `spec.variablesFrom[${variablesFrom.findIndex(({ stackRef }) => stackRef?.name === name)}].stackRef.name`
}

/** Only the reason, not the message: messages change often, and each change would write the status of the dependent Stack. */
export function notReadyReason(stack: Stack): string | undefined {
  if (stack.metadata.deletionTimestamp) return 'being deleted'
  const ready = findCondition(stack.status?.conditions, 'Ready')
  if (!ready || stack.status?.observedGeneration !== stack.metadata.generation) return 'not reconciled yet'
  if (ready.status === 'True' || isOnlyDrifted(stack, ready)) return undefined
  return findCondition(stack.status?.conditions, 'Stalled')?.status === 'True' ? `stalled: ${ready.reason}` : ready.reason
}

/**
 * True for a Stack whose inputs are applied and that is not Ready only because its resources have changed since. Its outputs are those of the last Apply, so
 * others need not wait until a user has decided what to do about the drift.
 */
function isOnlyDrifted({ status }: Stack, ready: Condition): boolean {
  if (ready.reason === 'Drifted') return true
  return ready.reason === 'AwaitingApproval' && areApplied(status?.plan, status?.applied)
}
