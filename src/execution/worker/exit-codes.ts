/** Exit codes of a worker process. */
export const workerExitCodes = {
  /** Its Runs are reported, whatever their result; or none was assigned to it; or it was stopped. */
  ok: 0,
  /** An unexpected error, such as a bug; the message names it. */
  unexpected: 1,
  /** A setting is missing or invalid. */
  invalidSetting: 2,
  /** Fenced: it stopped its engine because it could not renew its Lease in time, or because a Run was no longer its own. */
  fenced: 3,
  /** It could not register: the name is taken, or the API server is unreachable. */
  notRegistered: 4,
  /** The API server denied access: the credential or join token is invalid, expired or revoked. */
  accessDenied: 5,
  /** An unexpected error of a system call, such as on a full disk or without a free file: of its machine, whatever Run it executed. The message names the code. */
  systemError: 6,
  /** The supervisor of its machine did not respond, so it may start no engine. The message names its socket and how long the worker waited. */
  supervisorUnavailable: 7,
} as const
