/** The lock of a resource may belong to another process: the call was not made. Its new holder decides again. */
export class LockLostError extends Error {
  override readonly name: string = 'LockLostError'
}
