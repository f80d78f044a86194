/**
 * @module gateway/request: what a client has sent. Start reading at `client-request.ts`.
 * In: a request of any of the server's protocols. Out: its user, its body within limits, the headers and query that a partition gets.
 * Not here: where it belongs (`../routing/`).
 */

export { accountNamespace } from './account-namespace.ts'
export { atEnd } from './at-end.ts'
export { BodyMemory } from './body-memory.ts'
export { type ClientRequest, type ClientResponse, closed, sendBody } from './client-request.ts'
export { endWithCredential, isSameUser, streamCheckEveryMs, watchCheckEveryMs } from './end-with-credential.ts'
export { forwardedHeaders, jsonOf, readBody } from './forwarded-request.ts'
export { aboutOf, type NewObject, named, readNewObject, readSpecText } from './read-object.ts'
export { defaultRequestLimits, type RequestLimitOptions, RequestLimits } from './request-limits.ts'
export { gatewayProof, readTarget } from './request-target.ts'
export { Slots } from './slots.ts'
export { anonymousUser, type GatewayUser, gatewayUser, userHeaders } from './user-headers.ts'
