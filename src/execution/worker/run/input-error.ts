/** Something that a Run needs from the cluster is missing or of no use. Retryable, unless the spec itself is wrong or asks for what this worker cannot give. */
export class InputError extends Error {
  override readonly name = 'InputError'
  readonly reason: 'SecretNotFound' | 'ConfigMapNotFound' | 'OutputsNotFound' | 'KeyNotFound' | 'InvalidSpec' | 'IsolationUnavailable'
  readonly retryable: boolean

  /** `field` is a path such as `spec.variablesFrom[0].secretRef`. */
  constructor(reason: InputError['reason'], field: string, message: string) {
    super(`${field}: ${message}`)
    this.reason = reason
    this.retryable = reason !== 'InvalidSpec' && reason !== 'IsolationUnavailable'
  }
}
