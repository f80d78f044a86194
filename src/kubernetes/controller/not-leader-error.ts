/** This process no longer leads: a write that needs leadership was not sent, or its response is not awaited. The current leader decides again. */
export class NotLeaderError extends Error {
  override readonly name: string = 'NotLeaderError'

  constructor() {
    super('leadership was lost')
  }
}
