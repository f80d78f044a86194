import type { ServerResponse } from 'node:http'
import { publicReason } from '../../kubernetes/util/index.ts'
import type { MountHandler } from '../mount.ts'
import type { KeptClaim } from './keep-claim.ts'

/**
 * Serves only while the claim is held, and responds only if it still is: a process that was stopped during a request may have been replaced, and what it has
 * stored, or locked, is not what the stores of the installation have (invariant 5). Clients retry a request that got 503.
 */
export const whileClaimed =
  (claim: KeptClaim, handler: MountHandler): MountHandler =>
  async (request, response, context) => {
    if (!claim.isClaimed) return sendUnavailable(response, claim)
    onFirstWrite(response, () => claim.isClaimed || replaceResponse(response, claim))
    await handler(request, response, context)
  }

function sendUnavailable(response: ServerResponse, claim: KeptClaim): void {
  const error = { code: 'Unavailable', message: claim.notReady().map(publicReason).join('; ') }
  response.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1', Connection: 'close' }).end(JSON.stringify({ error }))
}

/** Calls `isAllowed` before anything is written; if it returns false, what is written from then on is dropped. */
function onFirstWrite(response: ServerResponse, isAllowed: () => boolean): void {
  const { writeHead, write, end } = response
  const checked =
    <Args extends unknown[], Result>(method: (...args: Args) => Result, dropped: Result) =>
    (...args: Args): Result => {
      Object.assign(response, { writeHead, write, end })
      return isAllowed() ? method.apply(response, args) : dropped
    }
  Object.assign(response, { writeHead: checked(writeHead, response), write: checked(write, true), end: checked(end, response) })
}

/** Returns false. */
function replaceResponse(response: ServerResponse, claim: KeptClaim): boolean {
  sendUnavailable(response, claim)
  Object.assign(response, { writeHead: () => response, write: () => true, end: () => response })
  return false
}
