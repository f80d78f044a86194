import { approvalOf, rejectionOf } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { patchShown, type ShownStack } from './patch-shown.ts'

export type ShownPlan = ShownStack & { readonly digest: string }

/** Approves exactly the plan that was shown. @throws {StatusError} Conflict if the Stack has changed since; Forbidden. */
export async function approvePlan(client: Client, user: string, { digest, ...shown }: ShownPlan): Promise<void> {
  await patchShown(client, shown, { metadata: { annotations: approvalOf(digest, user, Date.now()) } })
}

/** Rejects exactly the plan that was shown, as {@link approvePlan}. */
export async function rejectPlan(client: Client, user: string, { digest, ...shown }: ShownPlan, reason: string | undefined): Promise<void> {
  await patchShown(client, shown, { metadata: { annotations: rejectionOf(digest, user, reason, Date.now()) } })
}
