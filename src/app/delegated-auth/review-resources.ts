import { describeResource } from '../../kubernetes/object/index.ts'

/** A user as TokenReview reports it and SubjectAccessReview takes it. */
export type ReviewedUser = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string | undefined
  /** Further attributes, which webhook authorizers may use. */
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

type TokenReviewStatus = {
  authenticated?: boolean
  user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> }
  error?: string
}

export const tokenReviewResource = describeResource<{ spec: { token: string }; status?: TokenReviewStatus }>({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  scope: 'Cluster',
})

export const accessReviewResource = describeResource<{ spec: object; status?: { allowed?: boolean; evaluationError?: string } }>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  scope: 'Cluster',
})
