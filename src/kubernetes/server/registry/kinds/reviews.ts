import type { KindDeclaration } from './kind-declaration.ts'

const authentication = { group: 'authentication.k8s.io', isVirtual: true, verbs: ['create'] } as const
const authorization = { group: 'authorization.k8s.io', isVirtual: true, verbs: ['create'] } as const

/** Virtual kinds: their objects are evaluated by review/ when they are created, and never stored. */
export const reviewKinds: readonly KindDeclaration[] = [
  {
    ...authentication,
    kind: 'SelfSubjectReview',
    plural: 'selfsubjectreviews',
    cluster: true,
    typeName: 'io.k8s.api.authentication.v1.SelfSubjectReview',
  },
  {
    ...authentication,
    kind: 'TokenReview',
    plural: 'tokenreviews',
    cluster: true,
    typeName: 'io.k8s.api.authentication.v1.TokenReview',
  },
  {
    ...authorization,
    kind: 'LocalSubjectAccessReview',
    plural: 'localsubjectaccessreviews',
    typeName: 'io.k8s.api.authorization.v1.LocalSubjectAccessReview',
  },
  {
    ...authorization,
    kind: 'SelfSubjectAccessReview',
    plural: 'selfsubjectaccessreviews',
    cluster: true,
    typeName: 'io.k8s.api.authorization.v1.SelfSubjectAccessReview',
  },
  {
    ...authorization,
    kind: 'SelfSubjectRulesReview',
    plural: 'selfsubjectrulesreviews',
    cluster: true,
    typeName: 'io.k8s.api.authorization.v1.SelfSubjectRulesReview',
  },
  {
    ...authorization,
    kind: 'SubjectAccessReview',
    plural: 'subjectaccessreviews',
    cluster: true,
    typeName: 'io.k8s.api.authorization.v1.SubjectAccessReview',
  },
]

/** The request body of the subresource `token` of a ServiceAccount. */
export const tokenRequestDeclaration: KindDeclaration & { typeName: string } = {
  ...authentication,
  kind: 'TokenRequest',
  plural: 'tokenrequests',
  typeName: 'io.k8s.api.authentication.v1.TokenRequest',
}
