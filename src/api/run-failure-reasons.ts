/**
 * Why a Run failed: `status.reason` of the Run, and of the conditions of its Stack until it is retried or changed. docs/conditions.md describes each.
 * A worker of another version may report others.
 */
export const runFailureReasons = [
  // Of the engine.
  'EngineNotFound',
  'EngineVersionMismatch',
  'InvalidSpec',
  'InvalidConfiguration',
  'BackendInFiles',
  'StateInFiles',
  'InitFailed',
  'PlanFailed',
  'ApplyFailed',
  'DestroyFailed',
  'PlanOutdated',
  'ApprovalNotBound',
  'PendingCreates',
  'InvalidOutputs',
  'Interrupted',
  'WaitTimeout',
  'PackageManagerNotFound',
  'DependencyInstallFailed',
  'DependencyStoreFailed',
  'CommandNotFound',
  'CommandNotExecutable',
  'DirectoryNotFound',
  'SpawnFailed',
  // Of the source.
  'InvalidSource',
  'SourceNotFound',
  'SourceNotAllowed',
  'SourceUnavailable',
  'AppliedSourceUnavailable',
  'SourceAuthFailed',
  'SourceChanged',
  // Of inputs and outputs.
  'SecretNotFound',
  'ConfigMapNotFound',
  'OutputsNotFound',
  'KeyNotFound',
  'OutputsSecretTaken',
  'WorkerInputsNotAllowed',
  // Of limits and policies.
  'PolicyViolation',
  'IsolationUnavailable',
  'Timeout',
  'OutOfMemory',
  'TooManyProcesses',
  'DiskLimit',
  // Of the state.
  'StateLocked',
  'StateMissing',
  'StateRegressed',
  'JournalUnreadable',
  'StateRejected',
  'StateUnavailable',
  // Of the worker.
  'OwnershipLost',
  'RequestRejected',
  'UnexpectedFile',
  'InternalError',
  'RunFailed',
] as const
export type RunFailureReason = (typeof runFailureReasons)[number]

export const isRunFailureReason = (reason: string): reason is RunFailureReason => (runFailureReasons as readonly string[]).includes(reason)
