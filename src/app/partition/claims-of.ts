import { claims } from '../../controllers/claims/index.ts'
import { nameClaimResource, ownedKinds, tenantLabel } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Controller, Log } from '../../kubernetes/controller/index.ts'

/** The controller that removes the claims of a partition. */
export function claimsOf(
  partition: string,
  local: Client,
  options: { readonly signal: AbortSignal; readonly log: Log; keepClaimsUpTo(): number; isOwn?(signal: AbortSignal): Promise<boolean> },
): Controller {
  const { signal, log, keepClaimsUpTo: keepUpTo, isOwn } = options
  return claims({
    ...{ partition, local, claims: nameClaimResource, signal, keepUpTo, isOwn, kinds: ownedKinds, tenantLabel },
    onError: (error, what) => log.warn({ err: error }, what),
  })
}
