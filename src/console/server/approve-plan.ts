import { annotations, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'

/** A plan, at the version of the Stack at which it was shown (invariant 11). */
export type ShownPlan = { readonly namespace: string; readonly name: string; readonly digest: string; readonly resourceVersion: string }

/** Approves exactly the plan that was shown. @throws {StatusError} Conflict if the Stack has changed since; Forbidden. */
export async function approvePlan(client: Client, user: string, { namespace, name, digest, resourceVersion }: ShownPlan): Promise<void> {
  const approval = {
    [annotations.approvedPlan]: digest,
    [annotations.approvedBy]: user,
    [annotations.approvedAt]: new Date().toISOString(),
  }
  await client.resource(stackResource).patch(name, { metadata: { annotations: approval } }, { type: 'merge', namespace, resourceVersion })
}
