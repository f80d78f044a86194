import { type ApprovalPolicy, annotations } from './names.ts'
import type { Stack } from './stack.ts'

/** What users read of a digest. */
export const shortDigest = (digest: string): string => digest.replace(/^sha256:/, '').slice(0, 12)

/** A Stack as a user has seen it. Its status may change at any time: what a user decides about names this, and the digest of a plan. */
export type ShownVersion = { readonly uid: string; readonly generation: number }

/** Whether the Stack has the same spec, and awaits a decision about the same plan, if one with a `digest` was shown. */
export const isShown = (
  { metadata, status }: Pick<Stack, 'metadata' | 'status'>,
  { uid, generation, digest }: ShownVersion & { readonly digest?: string | undefined },
): boolean => metadata.uid === uid && metadata.generation === generation && (digest === undefined || status?.plan?.digest === digest)

/** The approval of a plan: annotations of its Stack. `user`: as the server knows it; an admission policy accepts no other. */
export const approvalOf = (digest: string, user: string, nowMs: number) => ({
  [annotations.approvedPlan]: digest,
  [annotations.approvedBy]: user,
  // A new value is a new approval, also of a plan whose approval has expired.
  [annotations.approvedAt]: new Date(nowMs).toISOString(),
})

/** The rejection of a plan, as {@link approvalOf}. */
export const rejectionOf = (digest: string, user: string, reason: string | undefined, nowMs: number) => ({
  [annotations.rejectedPlan]: digest,
  [annotations.rejectedBy]: user,
  [annotations.rejectedAt]: new Date(nowMs).toISOString(),
  // Null removes that of an earlier rejection.
  [annotations.rejectionReason]: reason ?? null,
})

/** Instead of the digest of a plan, in the confirmation of a destruction that has nothing to destroy. */
export const nothingToDestroy = 'none'

/** Whether the plans of a Stack need an approval, because of its spec or of its namespace. */
export const requiresApproval = ({ approval }: Pick<Stack['spec'], 'approval'>, policy: ApprovalPolicy | undefined): boolean =>
  approval === 'Manual' || policy !== undefined

/** The confirmation that a Stack is destroyed by exactly this plan, whatever its `spec.deletion` is: a merge patch, before its deletion. */
export const destructionOf = ({ metadata, spec }: Pick<Stack, 'metadata' | 'spec'>, digest: string, nowMs: number) => ({
  metadata: { annotations: { [annotations.destroyPlan]: `${digest}@${new Date(nowMs).toISOString()}` } },
  ...(metadata.deletionTimestamp === undefined && spec.deletion === 'Orphan' && { spec: { deletion: 'Destroy' as const } }),
})
