import { discovery } from '../app/index.ts'
import { type Client, ConnectionError } from '../kubernetes/client/index.ts'
import { formatDuration, StatusError } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type RoutedRole = 'stores' | 'queue'

/** What serves the requests of a role, and the command that starts it. */
const roles = {
  stores: { server: 'the stores', command: 'oarlock stores', run: 'do' },
  queue: { server: 'the leading controller', command: 'oarlock controller', run: 'does' },
} as const

/** A role that runs apart knows users by their token, which it has the API server review; a client certificate cannot be reviewed. */
export function certificateError(role: RoutedRole): CliError {
  return new CliError(`this kubeconfig uses a client certificate, which ${roles[role].server} ${roles[role].run} not accept`, {
    exitCode: exitCodes.rejected,
    hint: 'use a kubeconfig with a token, for example that of a ServiceAccount: kubectl create token NAME -n NAMESPACE',
  })
}

/**
 * The error for the user when a request to a role failed: which role does not answer or has published no address, and how to start it.
 * Returns other errors unchanged.
 * @param route `url`: the published address; undefined if none is, and the request went to the API server. `code`: set if its answer was awaited long enough.
 */
export async function roleError(
  error: unknown,
  role: RoutedRole,
  { url, code }: { url: string | undefined; code?: string | undefined },
  api: Client,
): Promise<unknown> {
  const isDown = url === undefined ? isNotServed(error) : code !== undefined || error instanceof ConnectionError
  if (!isDown) return error
  const { server, command, run } = roles[role]
  const leader = role === 'queue' ? await leaderText(api, Date.now()) : undefined
  const message =
    url === undefined
      ? `${server} ${role === 'stores' ? 'have' : 'has'} not published an address, and ${api.server} is not an "oarlock up" server`
      : `${server} ${run} not answer at ${url} (${code ?? (error as ConnectionError).code})`
  const more = role === 'queue' ? '; "oarlock get runs -A" shows the last reported position of each Run' : ''
  return new CliError(leader === undefined ? message : `${message}: ${leader}`, {
    exitCode: exitCodes.unreachable,
    hint:
      code === undefined
        ? `is "${command}" running?${more}`
        : `its process may be paused or overloaded; another one leads when its Lease has expired, so repeat the command${more}`,
    cause: error,
  })
}

/** An API server without the role has no such path: 404, or 403 for users who may not read paths. `oarlock up` responds with a body of its own. */
function isNotServed(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false
  return (error.code === 404 && error.details === undefined) || (error.code === 403 && / cannot \w+ path "/.test(error.message))
}

/** Who leads, and how long ago its Lease was renewed; undefined if the user cannot read the Lease. */
async function leaderText(api: Client, nowMs: number): Promise<string | undefined> {
  try {
    const leader = await (await discovery()).readLeader(api)
    if (leader === undefined) return 'no controller leads'
    const sinceMs = Math.max(0, nowMs - leader.renewedAtMs)
    const since = formatDuration(sinceMs)
    return sinceMs > leader.leaseDurationMs
      ? `no controller leads, ${leader.identity} last renewed its Lease ${since} ago`
      : `${leader.identity} leads, it renewed its Lease ${since} ago for ${formatDuration(leader.leaseDurationMs)}`
  } catch (error) {
    if (error instanceof StatusError || error instanceof ConnectionError) return undefined
    throw error
  }
}
