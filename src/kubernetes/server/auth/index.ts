/**
 * @module auth: authentication and authorization. Start reading at `authenticate.ts`.
 * In: headers, client certificates, the keys of the data directory. Out: users, tokens, certificates, a kubeconfig.
 * Anonymous requests are rejected except for health and version. No message contains a secret (invariant 9).
 */
export { type Authentication, type Authenticators, authenticate } from './authenticate.ts'
export { Authorization, type AuthorizationReview } from './authorization.ts'
export { issueClientCertificate, readCertificates, type ServingCertificates } from './certificates.ts'
export { FrontProxy, type FrontProxyOptions } from './front-proxy.ts'
export { kubeconfigText } from './kubeconfig.ts'
export { issueKubeletCertificates, type KubeletCertificates, readKubeletClient } from './kubelet-certificates.ts'
export { NodeAuthorizer, nodeRestriction } from './node/index.ts'
export { type OpenIdDocument, openIdDocument } from './openid.ts'
export * from './rbac/index.ts'
export { ReviewedTokens, type ReviewToken } from './reviewed-tokens.ts'
export { type Reference, type ReviewedToken, type ServiceAccountGrant, ServiceAccountTokens } from './service-account-tokens.ts'
export {
  frontProxyAuthority,
  issueFrontProxyCertificate,
  issueServingCertificate,
  readFrontProxyCa,
  readSharedTrust,
  type SharedTrust,
  writeSharedTrust,
} from './shared-trust.ts'
export { SigningKey } from './signing-key.ts'
export { type IssueTokenOptions, Tokens } from './tokens.ts'
export {
  type AdmissionPlugin,
  type AdmissionRequest,
  type Attributes,
  type Authorizer,
  type AuthorizerPlugin,
  adminsGroup,
  authenticatedUser,
  type DeletionPlugin,
  type User,
} from './user.ts'
