/**
 * @module controllers/managed/dispatch: changes of managed resources that take long, executed by workers. Start reading at `dispatch-to-stack.ts`; for an
 * author's operations at `operation-dispatcher.ts` (controller), `decide-operation.ts` and `run-operation.ts` (worker).
 * In: what a resource should be, as a Stack, or an author's operations. Out: options for `managed` that write a Stack which the resource owns, and report its Runs.
 * Not done here: queue, pools, isolation, fencing, retries and recovery of Runs, which are those of any Stack.
 */

export type { DispatchOptions } from './dispatch-options.ts'
export { type DispatchedState, dispatchToStack, type StackDispatchOptions } from './dispatch-to-stack.ts'
export type { OperationKind } from './operation.ts'
export { runOperation } from './run-operation.ts'
export { stackAnnotations } from './stack-marks.ts'
