/** The worker's side: executes one operation with the author's functions. */
import { readFile, writeFile } from 'node:fs/promises'
import type { Client } from '../../../kubernetes/client/index.ts'
import { coerceError, consoleLog } from '../../../kubernetes/controller/index.ts'
import type { KubeObject } from '../../../kubernetes/object/index.ts'
import type { Change, ConnectionDetails, ManagedBody, Observation } from '../managed-object.ts'
import type { ExternalRequest, ManagedOptions } from '../managed-options.ts'
import { hasUnknownOutcome } from '../unknown-outcome-error.ts'
import { exitCodes, type OperationVariables } from './operation.ts'

/**
 * Executes the operation that this process was started for by a worker, and exits: call it with the options of `managed` at the start of a program that
 * `dispatch.program` names, if the environment has `OARLOCK_VARIABLES`. SIGINT and SIGTERM abort the signal of the request. There is no API server: `request.client`
 * throws, and `request.variables` has what `dispatch.variables` returned.
 */
export async function runOperation<Body extends ManagedBody, Connection, State>(
  options: ManagedOptions<Body, Connection, State>,
): Promise<never> {
  process.exit(await executeOperation(options, process.env))
}

type Environment = { readonly OARLOCK_VARIABLES?: string; readonly OARLOCK_OUTPUTS?: string; readonly OARLOCK_EPOCH?: string }

/** Returns the exit code; the last line on stderr has the reason of a failure. */
export async function executeOperation<Body extends ManagedBody, Connection, State>(
  options: ManagedOptions<Body, Connection, State>,
  { OARLOCK_VARIABLES: inputs, OARLOCK_OUTPUTS: outputs, OARLOCK_EPOCH: epoch }: Environment,
): Promise<number> {
  if (!inputs || !outputs)
    throw new TypeError('runOperation needs OARLOCK_VARIABLES and OARLOCK_OUTPUTS: start it as dispatch.program of a managed kind')
  const { operation, object, observation, variables } = JSON.parse(await readFile(inputs, 'utf8')) as OperationVariables
  if (!operation.isRepeatable && Number(epoch) !== operation.number) {
    report(`${operation.kind} is not repeated: an earlier Run may have done it`)
    return exitCodes.refused
  }
  const aborting = new AbortController()
  const abort = () => aborting.abort(new DOMException('the Run was interrupted', 'AbortError'))
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, abort)
  const request: ExternalRequest<Body> = {
    object: object as unknown as KubeObject<Body>,
    externalName: operation.externalName,
    signal: aborting.signal,
    fence: operation.fence,
    client: noClient,
    log: consoleLog('info'),
    variables: variables ?? {},
  }
  let isCalled = false
  let isDone = false
  try {
    const connection = await options.connect(request)
    try {
      isCalled = true
      const change = await call(options, operation.kind, connection, request, (observation ?? { exists: false }) as Observation<State>)
      isDone = true
      await writeFile(outputs, JSON.stringify(outputsOf(change)))
      return 0
    } finally {
      await options.disconnect?.(connection).catch(error => request.log.warn({ err: coerceError(error) }, 'disconnect failed'))
    }
  } catch (thrown) {
    const error = coerceError(thrown)
    const isUnknown = isDone || (isCalled && (aborting.signal.aborted || hasUnknownOutcome(error)))
    report(`${error.message}${isUnknown ? '; it is not known whether it had an effect' : ''}`)
    return isUnknown ? exitCodes.unknown : exitCodes.failed
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, abort)
  }
}

async function call<Body extends ManagedBody, Connection, State>(
  options: ManagedOptions<Body, Connection, State>,
  kind: OperationVariables['operation']['kind'],
  connection: Connection,
  request: ExternalRequest<Body>,
  observation: Observation<State>,
): Promise<Change> {
  if (kind === 'create') return (await options.create(connection, request)) ?? {}
  if (kind === 'update') return (await options.update(connection, request, observation)) ?? {}
  await options.delete(connection, request, observation)
  return {}
}

function outputsOf({ externalName, connectionDetails, details, atProvider }: Change): object {
  return {
    ...(externalName && { externalName }),
    ...(details && { details }),
    ...(atProvider && { atProvider }),
    ...(connectionDetails && { connectionDetails: { value: encoded(connectionDetails), sensitive: true } }),
  }
}

const encoded = (details: ConnectionDetails): Record<string, string> =>
  Object.fromEntries(Object.entries(details).map(([key, value]) => [key, Buffer.from(value as string).toString('base64')]))

/** One line: the Run quotes the last one. */
function report(message: string): void {
  process.stderr.write(`${message.replaceAll(/\s*\n\s*/g, ' ')}\n`)
}

const noClient = new Proxy({} as Client, {
  get(_, name) {
    throw new TypeError(
      `client.${String(name)} is not available in an operation that a worker executes: pass what it needs by dispatch.variables`,
    )
  },
})
