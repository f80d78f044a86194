/** Exit codes of `oarlock`. Scripts rely on these numbers: none changes its meaning. */
export const exitCodes = {
  /** The command succeeded. */
  done: 0,
  /** The operation failed: a Run failed, or the fleet was not ready in time. */
  failed: 1,
  /** The command line is invalid; nothing was attempted. */
  usage: 2,
  /** An object does not exist. */
  notFound: 3,
  /** The API server rejected the request: invalid object, conflict, no permission. */
  rejected: 4,
  /** The API server is unreachable, or there is no kubeconfig. */
  unreachable: 5,
  /** `--wait` reached `--timeout`; the operation continues. */
  timedOut: 6,
  /** The data directory cannot be used: in use, written by a newer version, damaged, full, or not writable. */
  dataDirectory: 7,
  /** `up` or `serve` cannot listen: the port is in use, or not permitted. */
  listen: 8,
  /** Nothing was applied: a plan awaits approval. */
  awaitingApproval: 9,
  /** The Run was canceled. */
  canceled: 10,
  /** The Stack is applied, but its resources have changed since, or an Apply was interrupted: nothing corrects them now. */
  drifted: 11,
  /** Ctrl-C while waiting, or repeated during a shutdown. */
  interrupted: 130,
} as const

/** The table of `oarlock --help` and the docs, in one place. */
export const exitCodeHelp: readonly (readonly [code: number, meaning: string])[] = [
  [exitCodes.done, 'success'],
  [exitCodes.failed, 'failure: a Run failed, or the fleet was not ready in time'],
  [exitCodes.usage, 'invalid command line; nothing was attempted'],
  [exitCodes.notFound, 'object not found'],
  [exitCodes.rejected, 'rejected by the API server: invalid, conflict, or no permission'],
  [exitCodes.unreachable, 'API server unreachable, or no kubeconfig'],
  [exitCodes.timedOut, '--wait reached --timeout; the operation continues'],
  [exitCodes.dataDirectory, 'data directory in use, too new, damaged, full or not writable'],
  [exitCodes.listen, 'an address to listen on is in use, or not permitted'],
  [exitCodes.awaitingApproval, 'a plan awaits approval; it was not applied'],
  [exitCodes.canceled, 'the Run was canceled'],
  [exitCodes.drifted, 'the resources of the Stack have drifted'],
  [exitCodes.interrupted, 'interrupted'],
]
