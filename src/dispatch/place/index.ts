/**
 * place: which Worker gets which queued Run, and what the others wait for. `decide-placement.ts` decides; `placer.ts`
 * writes `spec.workerName` at the version that was decided on, so that a Run is given away once.
 */
export { decidePlacement, type Placement, type PlacementInput } from './decide-placement.ts'
export { Placer } from './placer.ts'
export { compareQueued, queueOrder } from './queue-order.ts'
export { explainWaiting, type Waiting, type WaitReason } from './wait-reason.ts'
