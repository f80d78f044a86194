/** A Secret or ConfigMap that a Run references, with nothing but the keys that it references. */
export type InputObject = {
  readonly name: string
  /** All keys of the object, for messages. */
  readonly keys: readonly string[]
  /** Values in base64 for a Secret, as text for a ConfigMap. */
  readonly data: Readonly<Record<string, string>>
}

/** Outputs of a Stack: each as JSON text, in base64. */
export type StackOutputsData = {
  readonly data: Readonly<Record<string, string>>
  /** The names of sensitive ones; undefined: all of them are. */
  readonly sensitive?: readonly string[] | undefined
  /** Of a Stack of engine pulumi: `<project>/<stack>`, by which the programs of other Stacks refer to it. */
  readonly pulumiStack?: string | undefined
}

/** What a Run references; objects that do not exist are not in it. */
export type RunInputObjects = {
  readonly secrets: readonly InputObject[]
  readonly configMaps: readonly InputObject[]
  readonly outputs: readonly (StackOutputsData & {
    readonly stack: string
    /** All outputs of the Stack, for messages. */
    readonly keys: readonly string[]
  })[]
}

/** A Run whose worker was authorized. */
export type AuthorizedRun = {
  readonly namespace: string
  readonly stack: string
  readonly stackUid: string
  readonly runName: string
  /** @throws if a newer Run of the Stack has started (invariant 3). */
  checkEpoch(): Promise<void>
}

/** Where the inputs of Runs are, and where the outputs of their Stacks go. Nothing of them is kept here. Each rejects with {@link RunInputsError}. */
export type RunInputsSource = {
  /** What the Run references. It also checks that its outputs can be stored: after the apply it would be too late. */
  read(run: AuthorizedRun): Promise<RunInputObjects>
  /** The outputs of another Stack that the Run references; undefined if it has none. */
  readOutputs(run: AuthorizedRun, stack: string): Promise<StackOutputsData | undefined>
  writeOutputs(run: AuthorizedRun, outputs: StackOutputsData): Promise<void>
  deleteOutputs(run: AuthorizedRun): Promise<void>
}

/** HTTP status by code. */
export const runInputsErrorStatus = {
  /** The stores may not read the Secrets of the namespace. */
  InputsNotAllowed: 403,
  NotReferenced: 403,
  RunEnded: 403,
  OutputsSecretTaken: 409,
  InputsTooLarge: 413,
  /** The API server rejects the outputs. */
  OutputsRejected: 422,
  Unavailable: 503,
} as const
export type RunInputsErrorCode = keyof typeof runInputsErrorStatus

export class RunInputsError extends Error {
  override readonly name = 'RunInputsError'
  readonly code: RunInputsErrorCode

  constructor(code: RunInputsErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
