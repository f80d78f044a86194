/** An object that a Run needs is missing or invalid, or its worker requires more of it. Retryable, unless the spec is invalid or requires isolation that this worker lacks. */
export class InputError extends Error {
  override readonly name = 'InputError'
  readonly reason:
    | 'SecretNotFound'
    | 'ConfigMapNotFound'
    | 'OutputsNotFound'
    | 'KeyNotFound'
    | 'InvalidConfiguration'
    | 'InvalidSpec'
    | 'IsolationUnavailable'
    | 'PolicyViolation'
  readonly retryable: boolean

  /** `field` is a path such as `spec.variablesFrom[0].secretRef`. */
  constructor(reason: InputError['reason'], field: string, message: string) {
    super(`${field}: ${message}`)
    this.reason = reason
    this.retryable = reason !== 'InvalidSpec' && reason !== 'InvalidConfiguration' && reason !== 'IsolationUnavailable'
  }
}
