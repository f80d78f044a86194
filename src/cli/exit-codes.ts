/** What `oarlock` exits with. Scripts rely on these numbers: none changes its meaning. */
export const exitCodes = {
  /** Done as asked. */
  done: 0,
  /** It was tried and did not work: a Run failed, or the sample fleet did not get there in time. */
  failed: 1,
  /** The command line is wrong; nothing was tried. */
  usage: 2,
  /** The object that was named does not exist. */
  notFound: 3,
  /** The API server refused: invalid object, conflict, no permission. */
  refused: 4,
  /** No API server was reached, or no kubeconfig was found. */
  unreachable: 5,
  /** `--wait` did not see the end within `--timeout`; what was started goes on. */
  timedOut: 6,
  /** A data directory cannot be used: in use, made by a newer version, damaged, full, or not writable. */
  dataDirectory: 7,
  /** `up` or `serve` cannot listen: the port is in use, or may not be used. */
  listen: 8,
  /** A second Ctrl-C, or a Ctrl-C while waiting. */
  interrupted: 130,
} as const

/** The table of `oarlock --help` and the docs, in one place. */
export const exitCodeHelp: readonly (readonly [code: number, meaning: string])[] = [
  [exitCodes.done, 'done as asked'],
  [exitCodes.failed, 'tried, but it failed (a Run failed; the fleet was not ready in time)'],
  [exitCodes.usage, 'wrong command line; nothing was tried'],
  [exitCodes.notFound, 'no such object'],
  [exitCodes.refused, 'refused by the API server (invalid, conflict, no permission)'],
  [exitCodes.unreachable, 'no API server reached, or no kubeconfig found'],
  [exitCodes.timedOut, '--wait gave up after --timeout; what was started goes on'],
  [exitCodes.dataDirectory, 'data directory in use, of a newer version, damaged, full or not writable'],
  [exitCodes.listen, 'up, serve: port in use, or not allowed'],
  [exitCodes.interrupted, 'interrupted'],
]
