import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { laterRevision } from '../../kubernetes/util/index.ts'
import { createWithinMs } from '../kinds/index.ts'

/** What a partition answers when it would create an object later than it may. */
export const createdTooLate = 412
/** Of a request that must create nothing, because no claim was made for it. */
export const mustNotCreate = { 'x-oarlock-not-after': '0' } as const

/**
 * Creates an object whose name is claimed, in the time in which the claim is certain to be there. A creation that comes too late has done nothing: it is
 * tried once more with a renewed claim.
 * @param claim makes or renews the claim, and returns its resource version.
 * @throws {StatusError} ServiceUnavailable if the second attempt comes too late too.
 */
export async function createClaimed(
  partition: string,
  claim: () => Promise<number>,
  send: (headers: Readonly<Record<string, string>>) => Promise<TransportStreamResponse>,
): Promise<TransportStreamResponse> {
  for (let attempt = 1; attempt <= 2; attempt++) {
    const notAfter = laterRevision(await claim(), createWithinMs)
    const answer = await send({ 'x-oarlock-not-after': String(notAfter) })
    if (answer.status !== createdTooLate) return answer
    for await (const _ of answer.body);
  }
  const why = `partition ${JSON.stringify(partition)} did not create it within ${createWithinMs / 1_000} s of the claim of its name`
  throw new StatusError('ServiceUnavailable', `${why}: its clock is ahead of that of home, or it is overloaded; retry`, {
    details: { retryAfterSeconds: 1 },
  })
}
