import { type StatusCause, StatusError } from '../../../kubernetes/object/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError, interruptedError } from '../engine-error.ts'

const interruptions = {
  PlanFailed: { during: 'plan', result: 'no object was changed' },
  ApplyFailed: { during: 'apply', result: 'the inventory has every object that it applied' },
  DestroyFailed: { during: 'destroy', result: 'the inventory has every object that may remain' },
} as const

/**
 * Converts an error of the API server into an EngineError that names file, document and object. An error that the server calls Invalid is
 * not retryable; every other error is. After an interrupt the result is always Interrupted.
 */
export function describeFailure(
  { signal }: Pick<EngineContext, 'signal'>,
  error: unknown,
  location: string,
  reason: 'PlanFailed' | 'ApplyFailed' | 'DestroyFailed',
): EngineError {
  if (signal.aborted) {
    const { during, result } = interruptions[reason]
    return interruptedError('manifests', during, result)
  }
  if (error instanceof EngineError) return error
  if (!(error instanceof StatusError)) {
    return new EngineError(reason, `${location}: ${error instanceof Error ? error.message : String(error)}`, {
      retryable: true,
      cause: error,
    })
  }
  const conflicts = (error.details?.causes ?? []).filter(cause => cause.reason === 'FieldManagerConflict')
  if (conflicts.length > 0)
    return new EngineError(reason, `${location}: ${describeConflicts(conflicts)}`, { retryable: true, cause: error })
  const isInvalid = ['Invalid', 'BadRequest', 'RequestEntityTooLarge'].includes(error.reason)
  const hint =
    error.reason === 'Forbidden'
      ? '; grant that permission to the worker, or to the user in the kubeconfig of spec.manifests.kubeconfigSecretRef'
      : ''
  return new EngineError(isInvalid ? 'InvalidConfiguration' : reason, `${location}: ${error.message}${hint}`, {
    retryable: !isInvalid,
    cause: error,
  })
}

function describeConflicts(conflicts: readonly StatusCause[]): string {
  const managers = [...new Set(conflicts.map(({ message }) => /conflict with "([^"]+)"/.exec(message ?? '')?.[1] ?? message ?? ''))]
  const names = conflicts.map(({ field }) => field).slice(0, 5)
  const more = conflicts.length > names.length ? ` and ${conflicts.length - names.length} more` : ''
  return (
    `${names.join(', ')}${more} ${conflicts.length > 1 ? 'are' : 'is'} managed by ${managers.map(each => JSON.stringify(each)).join(', ')}: ` +
    `remove ${conflicts.length > 1 ? 'these fields' : 'the field'} here, or take over once with ` +
    '"kubectl apply --server-side --force-conflicts --field-manager=oarlock"'
  )
}
