/** The engine failed, and then saving its state did. The Run ends with the reason of the first failure, and names both. */
export class UnsavedStateError extends Error {
  override readonly name = 'UnsavedStateError'
  declare readonly cause: Error

  constructor(engineError: Error, saveError: Error) {
    super(`${engineError.message}; saving its state failed too: ${saveError.message}`, { cause: engineError })
  }
}
