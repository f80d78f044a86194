/**
 * @module controllers/claims: removes claims of names whose object is gone. Start reading at `decide-claim.ts`.
 * In: the NameClaims of home, the objects of this partition. Out: claims that are deleted, if they have not changed meanwhile.
 * Not done here: making and renewing claims (`gateway/creation/claim-object-name.ts`), and the time in which an object may be created (`gateway/creation/create-claimed.ts`).
 */
export { type ClaimsOptions, claims } from './claims.ts'
export { type ClaimDecision, type ClaimState, decideClaim, defaultRemoveAfterMs } from './decide-claim.ts'
