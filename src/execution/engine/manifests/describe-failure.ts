import { StatusError } from '../../../kubernetes/object/index.ts'
import { EngineError, type EngineErrorReason } from '../engine-error.ts'

/**
 * Turns an answer of the API server into an EngineError that names file, document and object. What the server calls Invalid stays invalid;
 * everything else may be tried again.
 */
export function describeFailure(error: unknown, place: string, reason: EngineErrorReason): EngineError {
  if (error instanceof EngineError) return error
  if (!(error instanceof StatusError)) {
    return new EngineError(reason, `${place}: ${error instanceof Error ? error.message : String(error)}`, { retryable: true, cause: error })
  }
  const conflicts = (error.details?.causes ?? []).filter(cause => cause.reason === 'FieldManagerConflict')
  if (conflicts.length > 0) {
    const managers = [...new Set(conflicts.map(({ message }) => /conflict with "([^"]+)"/.exec(message)?.[1] ?? message))]
    const names = conflicts.map(({ field }) => field).slice(0, 5)
    const more = conflicts.length > names.length ? ` and ${conflicts.length - names.length} more` : ''
    return new EngineError(
      reason,
      `${place}: ${names.join(', ')}${more} ${conflicts.length > 1 ? 'are' : 'is'} managed by ${managers.map(each => JSON.stringify(each)).join(', ')}: ` +
        `remove ${conflicts.length > 1 ? 'these fields' : 'the field'} here, or take over once with ` +
        '"kubectl apply --server-side --force-conflicts --field-manager=oarlock"',
      { retryable: true, cause: error },
    )
  }
  const isInvalid = ['Invalid', 'BadRequest', 'RequestEntityTooLarge'].includes(error.reason)
  const hint =
    error.reason === 'Forbidden' ? '; give the worker (or the kubeconfig of spec.manifests.kubeconfigSecretRef) that permission' : ''
  return new EngineError(isInvalid ? 'InvalidConfiguration' : reason, `${place}: ${error.message}${hint}`, {
    retryable: !isInvalid,
    cause: error,
  })
}
