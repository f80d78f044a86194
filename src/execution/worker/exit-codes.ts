/** With what a worker process ends. */
export const workerExitCodes = {
  /** Its Run is reported, whatever the result; or there was none for it; or it was told to stop. */
  ok: 0,
  /** A bug, or something nobody foresaw; the message says what. */
  unexpected: 1,
  /** A setting is missing or wrong. */
  invalidSetting: 2,
  /** It stopped its engine because it could not renew its Lease in time, or because the Run was not its own any more. */
  fenced: 3,
  /** It could not register: the name is taken, or the API cannot be reached. */
  notRegistered: 4,
  /** The API does not let it in: its credential or join token is wrong, over or revoked. */
  accessDenied: 5,
} as const
