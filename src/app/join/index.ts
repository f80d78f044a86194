/**
 * @module app/join: the credentials of workers, and how those on other machines join. Start reading at `join-service.ts`, which exchanges a join token
 * (`join-token.ts`, created by `oarlock token create` through `manage-tokens.ts`) for the credential of one worker, and issues those of
 * workers that this host starts. The worker renews it (`credential.ts`); it ends with its Worker (`credential-revoker.ts`). The token decides
 * about the labels of the worker (`worker-labels.ts`).
 * In: a join token. Out: a name, a pool, labels, and a credential for an hour.
 * Out of scope: what the credential permits (`../api-server/authorize-worker.ts`, `../manifests/`).
 */
export { bootstrapWorker, fetchPinnedCa, JoinError } from './bootstrap.ts'
export { Credential } from './credential.ts'
export { CredentialRevoker } from './credential-revoker.ts'
export { createJoinHandler } from './join-handler.ts'
export { isNewCredential, issuedAtAnnotation, workerCredentialName, workerCredentialType, workerUidAnnotation } from './join-secrets.ts'
export { type IssueCredential, type JoinResponse, JoinService, type JoinServiceOptions } from './join-service.ts'
export { parseJoinToken } from './join-token.ts'
export { looksLikeJoinToken } from './looks-like-join-token.ts'
export { createJoinToken, listJoinTokens, revokeJoinToken, revokeWorker } from './manage-tokens.ts'
export { serverTokenIssuer } from './server-token-issuer.ts'
export { serviceAccountIssuer } from './service-account-issuer.ts'
export { credentialLabels } from './worker-labels.ts'
