/**
 * join: how workers of other machines get in. A join token (`join-token.ts`, made by `oarlock token create` through
 * `manage-tokens.ts`) is exchanged at the server (`join-desk.ts`) for a credential of one worker, which that worker keeps
 * fresh (`credential.ts`). Its labels are the token's to say (`worker-labels.ts`).
 * In: a token. Out: a name, a pool, labels, a credential for some hours. What it opens stands in `../authorize-joined.ts`.
 */
export { bootstrapWorker, fetchPinnedCa, JoinError } from './bootstrap.ts'
export { Credential } from './credential.ts'
export { createJoinHandler } from './join-handler.ts'
export { workerCredentialName } from './join-secrets.ts'
export { type JoinResponse, JoinService, type JoinServiceOptions } from './join-service.ts'
export { looksLikeJoinToken, parseJoinToken } from './join-token.ts'
export { createJoinToken, listJoinTokens, revokeJoinToken, revokeWorker } from './manage-tokens.ts'
export { anyLabel, credentialLabels, formatLabelPolicy } from './worker-labels.ts'
