import { annotations } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { patchShown, type ShownStack } from './patch-shown.ts'

export type ShownPlan = ShownStack & { readonly digest: string }

/** Approves exactly the plan that was shown. @throws {StatusError} Conflict if the Stack has changed since; Forbidden. */
export async function approvePlan(client: Client, user: string, { digest, ...shown }: ShownPlan): Promise<void> {
  await patchShown(client, shown, {
    metadata: {
      annotations: {
        [annotations.approvedPlan]: digest,
        [annotations.approvedBy]: user,
        [annotations.approvedAt]: new Date().toISOString(),
      },
    },
  })
}
