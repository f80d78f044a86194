import { workersNamespace } from '../../../api/index.ts'
import { isReason } from '../../../kubernetes/object/index.ts'

/** The worker may not read or write Secrets and ConfigMaps of a namespace: an administrator allows it for each. */
export class InputsAccessError extends Error {
  override readonly name = 'InputsAccessError'
  readonly reason = 'WorkerInputsNotAllowed'
  readonly retryable = true

  constructor(namespace: string, cause: Error) {
    const grant = `kubectl create rolebinding oarlock-workers --clusterrole=oarlock:worker-inputs --group=system:serviceaccounts:${workersNamespace} -n ${namespace}`
    super(`workers may not use Secrets and ConfigMaps of namespace ${namespace}; allow it with: ${grant} (${cause.message})`, { cause })
  }
}

/** Awaits a request for a Secret or ConfigMap. @throws {InputsAccessError} if it is forbidden. */
export async function explainForbidden<T>(request: Promise<T>, namespace: string): Promise<T> {
  try {
    return await request
  } catch (error) {
    throw isReason(error, 'Forbidden') ? new InputsAccessError(namespace, error as Error) : error
  }
}
