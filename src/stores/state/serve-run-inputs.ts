import type { ServerResponse } from 'node:http'
import { HttpError, sendJson } from '../http/index.ts'
import type { Fence } from './decide-lock.ts'
import type { RunTarget } from './parse-state-request.ts'
import { type AuthorizedRun, RunInputsError, type RunInputsSource, runInputsErrorStatus, type StackOutputsData } from './run-inputs.ts'
import { lockRejected } from './state-responses.ts'

/** A Secret holds at most 1 MiB; the names of sensitive outputs are sent twice. */
const maxOutputsBytes = 2 * 1024 * 1024

type RunInputsExchange = {
  method: string
  res: ServerResponse
  body(maxBytes: number): Promise<Buffer>
  stackUid: string
}

export const isRunInputs = ({ resource }: RunTarget): boolean => resource === 'inputs' || resource === 'outputs'

/**
 * `GET inputs`; `GET outputs/<stack>` of another Stack; `PUT outputs` and `DELETE outputs` of the Run's own. A Run that a newer one has fenced off
 * gets 409 `StaleEpoch` (invariant 3).
 */
export async function serveRunInputs(
  { namespace, stack, runName, epoch, resource, outputsOf }: RunTarget,
  { method, res, body, stackUid }: RunInputsExchange,
  { source, fence }: { source: RunInputsSource; fence(stackUid: string): Promise<Fence> },
): Promise<void> {
  const run: AuthorizedRun = {
    ...{ namespace, stack, stackUid, runName },
    checkEpoch: async () => {
      const { minEpoch, maxSeenEpoch } = await fence(stackUid)
      if (epoch < minEpoch) throw lockRejected({ kind: 'rejected', reason: 'StaleEpoch', currentEpoch: maxSeenEpoch })
    },
  }
  try {
    await run.checkEpoch()
    switch (`${method} ${resource}${outputsOf === '' ? '' : '/'}`) {
      case 'GET inputs':
        return sendJson(res, 200, await source.read(run))
      case 'GET outputs/':
        return sendJson(res, 200, (await source.readOutputs(run, outputsOf)) ?? {})
      case 'PUT outputs':
        await source.writeOutputs(run, parseOutputs(await body(maxOutputsBytes)))
        return sendJson(res, 200, {})
      case 'DELETE outputs':
        await source.deleteOutputs(run)
        return sendJson(res, 200, {})
    }
  } catch (error) {
    if (!(error instanceof RunInputsError)) throw error
    throw new HttpError(runInputsErrorStatus[error.code], error.code, error.message)
  }
  const allowed = resource === 'inputs' || outputsOf !== '' ? 'GET' : 'PUT or DELETE'
  throw new HttpError(405, 'MethodNotAllowed', `${method} is not allowed here, use ${allowed}`)
}

/** @throws {HttpError} 400 */
function parseOutputs(bytes: Buffer): StackOutputsData {
  const wrong = () => new HttpError(400, 'BadRequest', 'the body must be {"data":{…},"sensitive":[…]} with values in base64')
  let value: Partial<StackOutputsData> | null
  try {
    value = JSON.parse(bytes.toString()) as Partial<StackOutputsData> | null
  } catch {
    throw wrong()
  }
  const { data, sensitive, pulumiStack } = value ?? {}
  const isText = (each: unknown): boolean => typeof each === 'string'
  if (typeof data !== 'object' || data === null || !Object.values(data).every(isText)) throw wrong()
  if (!Array.isArray(sensitive) || !sensitive.every(isText)) throw wrong()
  if (pulumiStack !== undefined && !isText(pulumiStack)) throw wrong()
  return { data, sensitive, ...(pulumiStack !== undefined && { pulumiStack }) }
}
