import { StatusError } from '../kubernetes/object/index.ts'
import { exitCodes } from './exit-codes.ts'

/** An error for the user: what went wrong, what to do next (`hint`), and the exit code. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: number
  readonly hint: string | undefined
  /** Each is printed on a line of its own. */
  readonly details: readonly string[]

  constructor(message: string, options: { exitCode?: number; hint?: string; details?: readonly string[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.details = options.details ?? []
    this.exitCode = options.exitCode ?? exitCodes.failed
    this.hint = options.hint
  }
}

export const usageError = (message: string, hint = '"oarlock --help" lists the commands') =>
  new CliError(message, { exitCode: exitCodes.usage, hint })

// Not from api/, which would load too much for each command.
const ownGroup = 'oarlock.dev'
const systemNamespaces = ['oarlock-system', 'oarlock-workers']

export type FormattedError = { message: string; details: string[]; hint: string | undefined; exitCode: number }

/** The message, hint and exit code for any error. Each field of an invalid object gets a line of its own. */
export function formatError(error: unknown): FormattedError {
  if (error instanceof CliError) return { message: error.message, details: [...error.details], hint: error.hint, exitCode: error.exitCode }
  if (error instanceof StatusError) return formatStatusError(error)
  // Compared by name: importing the client for its class would cost servers 2 MB.
  if (error instanceof Error && error.name === 'ConnectionError') {
    return {
      message: error.message,
      details: [],
      hint: 'start a server with "oarlock up", or choose another with --kubeconfig',
      exitCode: exitCodes.unreachable,
    }
  }
  if (error instanceof Error && error.name === 'AbortError') {
    return { message: 'interrupted', details: [], hint: undefined, exitCode: exitCodes.interrupted }
  }
  if (error instanceof TypeError && /kubeconfig|KUBECONFIG/.test(error.message)) {
    return {
      message: error.message,
      details: [],
      hint: 'start a server with "oarlock up", or choose a kubeconfig with --kubeconfig',
      exitCode: exitCodes.unreachable,
    }
  }
  const message = error instanceof Error ? error.message : String(error)
  return { message, details: [], hint: undefined, exitCode: exitCodes.failed }
}

function formatStatusError(error: StatusError): FormattedError {
  const { code, details } = error
  const causes = details?.causes ?? []
  const isInvalid = code === 422 && causes.length > 0
  const message = isInvalid ? `${details?.kind ?? 'object'} "${details?.name ?? ''}" is invalid` : error.message
  return {
    message,
    details: isInvalid ? causes.map(({ field, message }) => `${field}: ${message}`) : [],
    hint: code === 403 ? forbiddenHint(error.message) : code === 422 ? fieldsHint(details) : hints[code],
    exitCode: exitCodeOf(error),
  }
}

export const exitCodeOf = ({ code }: StatusError): number =>
  code === 404 ? exitCodes.notFound : code >= 500 ? exitCodes.failed : exitCodes.rejected

/** Of which kind the fields are to be looked up. */
function fieldsHint({ kind = 'KIND', group = '' }: { kind?: string; group?: string } = {}): string {
  const explain = `"kubectl explain ${kind.toLowerCase()}${group === ownGroup ? '.spec' : ''}"`
  return group === ownGroup ? `${explain} and docs/reference/ list the allowed fields` : `${explain} lists the allowed fields`
}

/** Names the role that grants what was forbidden, if users have one for it. */
export function forbiddenHint(message: string): string | undefined {
  const [, verb = '', resource = '', group, namespace] =
    /cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?/.exec(message) ?? []
  if (group === ownGroup) return rightHint(verb, resource, namespace)
  if (message.includes('"/backup"')) return backupHint
  return systemNamespaces.includes(namespace ?? '') ? administratorsOnly : undefined
}

/** A backup contains every Secret. */
const backupHint =
  'the ClusterRole cluster-admin grants it, or one with the verb get and nonResourceURLs ["/backup"]: kubectl create clusterrolebinding NAME --clusterrole=ROLE --user=USER'
const administratorsOnly = 'only administrators of the cluster and processes of Oarlock have this permission'

/** How to get a permission on our kinds, in a namespace or on all objects. */
export function rightHint(verb: string, resource: string, namespace: string | undefined): string {
  const role = roleThatGrants(verb, resource)
  if (role === undefined) return administratorsOnly
  const user = '--user=USER'
  return namespace === undefined
    ? `the ClusterRole ${role} grants it: kubectl create clusterrolebinding NAME --clusterrole=${role} ${user}`
    : `the ClusterRole ${role} grants it in namespace ${namespace}: kubectl create rolebinding NAME --clusterrole=${role} ${user} -n ${namespace}`
}

/** The role for users that grants a request (`app/manifests/user-roles.ts`, which would load too much here); undefined if none does. */
function roleThatGrants(verb: string, resource: string): string | undefined {
  if (resource === 'stacks/state' || resource === 'stacks/recovery') return 'oarlock:admin'
  if (resource === 'stacks/approval') return 'oarlock:approver'
  // Who deletes a Stack needs both, unless it keeps its resources.
  if (resource === 'stacks/destroy' || (resource === 'stacks' && verb === 'delete')) return 'oarlock:destroyer'
  if (resource === 'runs/cancel') return 'oarlock:edit'
  if (verb === 'get' || verb === 'list' || verb === 'watch') return 'oarlock:view'
  if (resource === 'stacks' || (resource === 'runs' && verb !== 'create' && verb !== 'deletecollection')) return 'oarlock:edit'
  return undefined
}

const hints: Record<number, string | undefined> = {
  401: 'the server rejected the credentials of this kubeconfig; was the data directory recreated?',
  409: 'another manager changed the object or owns its fields; try again (apply: --force takes the fields over)',
}
