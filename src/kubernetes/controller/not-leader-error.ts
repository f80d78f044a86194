/** This process does not lead any more, and a write that needed that was not sent or is not waited for: whoever leads now decides anew. */
export class NotLeaderError extends Error {
  override readonly name: string = 'NotLeaderError'

  constructor() {
    super('leadership was lost')
  }
}
