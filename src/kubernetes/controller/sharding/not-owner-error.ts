/** This process does not own the bucket of the key any more: the write was not sent, or its response is not awaited. The owner decides again. */
export class NotOwnerError extends Error {
  override readonly name: string = 'NotOwnerError'

  constructor(bucket: number) {
    super(`bucket ${bucket} is not owned by this process any more`)
  }
}
