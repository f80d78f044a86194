import { approvalOf, decisionBlocker, rejectionOf } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { patchShown, type ShownStack } from './patch-shown.ts'

export type ShownPlan = ShownStack & { readonly digest: string }

/** Approves exactly the plan that was shown. @throws {StatusError} Conflict if the Stack has changed since, or needs no approval; Forbidden. */
export async function approvePlan(client: Client, user: string, plan: ShownPlan): Promise<void> {
  await patchShown(client, plan, () => ({ metadata: { annotations: approvalOf(plan.digest, user, Date.now()) } }), decisionBlocker)
}

/** Rejects exactly the plan that was shown, as {@link approvePlan}. */
export async function rejectPlan(client: Client, user: string, plan: ShownPlan, reason: string | undefined): Promise<void> {
  await patchShown(client, plan, () => ({ metadata: { annotations: rejectionOf(plan.digest, user, reason, Date.now()) } }), decisionBlocker)
}
