import type { MountHandler } from '../mount.ts'
import type { KeptClaim } from './keep-claim.ts'

/** Serves only while the claim is held. Clients retry a request that got 503. */
export const whileClaimed =
  (claim: KeptClaim, handler: MountHandler): MountHandler =>
  async (request, response, context) => {
    if (claim.isClaimed) return await handler(request, response, context)
    const error = { code: 'Unavailable', message: claim.notReady().join('; ') }
    response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end(JSON.stringify({ error }))
  }
