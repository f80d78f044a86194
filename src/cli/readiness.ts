import { oarlockCommand, type Stack, stackMessage, stackState } from '../api/index.ts'
import { dependencyNames, notReadyReason } from '../controllers/stack/index.ts'
import { findCondition } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
import { awaitingApproval } from './request-run.ts'

/** How far an applied Stack has come. */
export type Readiness =
  | { readonly kind: 'ready' | 'working' }
  /** It needs a user, and so the wait for it has ended. */
  | { readonly kind: 'failed'; readonly error: CliError }
  /** It continues when a user approves its plan, or continues a Stack that it waits for: that can happen while others work. */
  | { readonly kind: 'waiting'; readonly error: CliError }

/** What is left to do for a Stack that was applied as `metadata`. `find` returns another Stack of its namespace. */
export function readinessOf(
  { uid, name }: Stack['metadata'],
  stack: Stack | undefined,
  find: (name: string) => Stack | undefined,
): Readiness {
  if (stack?.metadata.uid !== uid)
    return { kind: 'failed', error: new CliError(`stack/${name} was deleted`, { exitCode: exitCodes.notFound }) }
  const own = obstacleOf(stack)
  if (own) return { kind: own.isApproval ? 'waiting' : 'failed', error: own.error }
  if (stackState(stack) === 'Ready') return { kind: 'ready' }
  const other = obstacleOfDependencies(stack, find, new Set([name]))
  return other ? { kind: 'waiting', error: dependencyError(stack, other) } : { kind: 'working' }
}

/** A Stack that does not continue without a user. */
type Obstacle = { readonly stack: Stack; readonly text: string; readonly isApproval?: boolean; readonly error: CliError }

function obstacleOf(stack: Stack): Obstacle | undefined {
  const { metadata, status } = stack
  const { reason, message } = stackMessage(stack)
  const obstacle = (text: string, code: number = exitCodes.failed): Obstacle => {
    const hint = `"${oarlockCommand('describe stack', metadata)}" shows its state`
    return {
      stack,
      text,
      error: new CliError(`stack/${metadata.name} ${text}`, { exitCode: code, ...(code !== exitCodes.drifted && { hint }) }),
    }
  }
  switch (stackState(stack)) {
    case 'AwaitingApproval': {
      const { plan } = status ?? {}
      const waiting = obstacle('awaits approval', exitCodes.awaitingApproval)
      return { ...waiting, isApproval: true, error: plan ? awaitingApproval(stack, plan) : waiting.error }
    }
    case 'Failed':
    case 'EngineNotFound':
      return obstacle(`failed: ${reason}: ${message}`, reason === 'RunCanceled' ? exitCodes.canceled : exitCodes.failed)
    case 'PlanRejected':
      return obstacle(`is not applied: ${message}`, exitCodes.failed)
    case 'Drifted':
      return obstacle(`is applied, but differs: ${message}`, exitCodes.drifted)
    case 'Suspended':
      return obstacle('is suspended')
    case 'Deleting':
      return obstacle('is being deleted')
    case 'Ready':
    case 'Pending':
    case 'Working':
    case 'Failing':
      return undefined
  }
}

/** What a Stack waits for, directly or through others, that does not continue without a user. `visited` are the names on the way. */
function obstacleOfDependencies(stack: Stack, find: (name: string) => Stack | undefined, visited: Set<string>): Obstacle | undefined {
  if (findCondition(stack.status?.conditions, 'Ready')?.reason !== 'DependencyNotReady' || stackState(stack) === 'Pending') return undefined
  for (const name of dependencyNames(stack.spec)) {
    const dependency = find(name)
    // One that has only drifted is no obstacle.
    if (visited.has(name) || !dependency || notReadyReason(dependency) === undefined) continue
    visited.add(name)
    const found = obstacleOf(dependency) ?? obstacleOfDependencies(dependency, find, visited)
    if (found) return found
  }
  return undefined
}

function dependencyError({ metadata }: Stack, { stack, text, isApproval, error }: Obstacle): CliError {
  return new CliError(`stack/${metadata.name} waits for stack/${stack.metadata.name}, which ${text}`, {
    exitCode: error.exitCode,
    hint: isApproval
      ? `show and approve its plan: ${oarlockCommand('approve', stack.metadata)}`
      : `"${oarlockCommand('describe stack', stack.metadata)}" shows its state`,
  })
}
