import type { StackSource, StackSpec } from '../../../api/index.ts'
import type { JsonObject, KubeObject } from '../../../kubernetes/object/index.ts'
import type { ExternalRequest } from '../managed-options.ts'
import type { OperationKind } from './operation.ts'

type RunFields =
  | 'pool'
  | 'timeout'
  | 'isolation'
  | 'env'
  | 'resources'
  | 'placement'
  | 'priorityClass'
  | 'priority'
  | 'concurrencyKey'
  | 'concurrencyLimit'
  | 'serviceAccountName'
  | 'retry'
  | 'historyLimit'

/** Operations that workers execute with the author's functions, each as a Run of a Stack of the resource. The fields of a Stack's spec have their meaning there. */
export type DispatchOptions<Body> = Pick<StackSpec, RunFields> & {
  /** Those that take long; the others, and `observe` always, are called in the reconcile. */
  readonly operations: readonly OperationKind[]
  /** The program that calls `runOperation` with the same options, such as `['node', '/provider/main.js']`: it must exist on the workers, or come with `source`. */
  readonly program: readonly string[]
  /** Default: no files. */
  readonly source?: StackSource | undefined
  /** What the operation needs of the API server, computed in the reconcile: a worker has no access to it. Not for secrets, which `env` has by reference. */
  variables?(request: ExternalRequest<Body>): JsonObject | Promise<JsonObject>
  /** Name of the Stack, in the namespace of the resource. Default: `<kind>-<name>`, in lower case. */
  stackName?(object: KubeObject<Body>): string
}
