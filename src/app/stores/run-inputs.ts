import { isEnded, type Run, runResource, systemNamespace, workersNamespace } from '../../api/index.ts'
import { type Client, configMapResource, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, StatusError } from '../../kubernetes/object/index.ts'
import {
  type AuthorizedRun,
  type InputObject,
  type RunInputObjects,
  RunInputsError,
  type RunInputsSource,
  type StackOutputsData,
} from '../../stores/state/index.ts'
import { runInputsRole } from '../manifests/index.ts'
import { componentAccount } from '../worker-identity.ts'
import { deleteOutputsSecret, expectWritable, outputsIn, readOutputsSecret, writeOutputsSecret } from './outputs-secret.ts'
import { referableStacks, type SelectedKeys, selectInputs } from './select-inputs.ts'

export type RunInputsOptions = {
  /** Reads Runs, and reads and writes Secrets in namespaces where that is allowed. */
  client: Client
  /** Gets the error behind `Unavailable`. */
  onError(error: unknown): void
  /** Bytes of all values that one Run gets, as they are sent. Default 8 MiB: a Run whose secrets have more than 4 MiB fails anyway. */
  maxBytes?: number
}

/**
 * The inputs of Runs, in Secrets and ConfigMaps of their namespaces. A worker gets the keys that its Run references, and has no right to read the
 * objects. The Run is requested from the API server each time: a cache may not have its end yet.
 */
export function createRunInputs({ client, onError, maxBytes = 8 * 1024 * 1024 }: RunInputsOptions): RunInputsSource {
  /** Awaits requests to the API server. @throws {RunInputsError} */
  async function ask<T>(namespace: string, requests: () => Promise<T>): Promise<T> {
    try {
      return await requests()
    } catch (error) {
      if (!(error instanceof Error) || error.name === 'RunInputsError' || error.name === 'HttpError') throw error
      if (isReason(error, 'Forbidden')) throw inputsNotAllowed(namespace, error)
      onError(error)
      throw new RunInputsError('Unavailable', 'the API server did not return the inputs of the Run; retry later', { cause: error })
    }
  }

  /** @throws {RunInputsError} RunEnded */
  async function activeRun({ namespace, runName, stackUid }: AuthorizedRun): Promise<Run> {
    if (namespace === systemNamespace || namespace === workersNamespace) {
      const message = `Secrets of namespace ${namespace} are not handed out; move the Stack to a namespace of its own`
      throw new RunInputsError('InputsNotAllowed', message)
    }
    const run = await client.resource(runResource).getOrUndefined(runName, { namespace })
    if (!run || isEnded(run) || run.spec.stackRef.uid !== stackUid)
      throw new RunInputsError('RunEnded', `Run ${namespace}/${runName} has ended: its inputs are no longer served`)
    return run
  }

  return {
    read: run =>
      ask(run.namespace, async () => {
        const { namespace } = run
        const { spec } = await activeRun(run)
        const own = await readOutputsSecret(client, namespace, run.stack)
        const isDestruction = spec.type === 'Destroy' || spec.planMode === 'Destroy'
        if (!isDestruction) expectWritable(own, run)
        const selected = selectInputs(spec.stack)
        const budget = new InputsBudget(maxBytes)
        const inputs: { -readonly [Kind in keyof RunInputObjects]: RunInputObjects[Kind][number][] } = {
          secrets: [],
          configMaps: [],
          outputs: [],
        }
        // One after another: of all the objects, only one is in memory with keys that the Run does not get.
        for (const [name, keys] of selected.secrets) {
          const found = await client.resource(secretResource).getOrUndefined(name, { namespace })
          if (found) inputs.secrets.push(budget.take(restrict(name, found.data, keys)))
        }
        for (const [name, keys] of selected.configMaps) {
          const found = await client.resource(configMapResource).getOrUndefined(name, { namespace })
          if (found) inputs.configMaps.push(budget.take(restrict(name, found.data, keys)))
        }
        for (const [stack, keys] of selected.outputs) {
          const found = outputsIn(await readOutputsSecret(client, namespace, stack))
          if (!found) continue
          const { keys: names, data } = budget.take(restrict(stack, found.data, keys))
          const sensitive = found.sensitive?.filter(name => Object.hasOwn(data, name))
          inputs.outputs.push({ stack, keys: names, data, sensitive })
        }
        return inputs
      }),
    readOutputs: (run, stack) =>
      ask(run.namespace, async (): Promise<StackOutputsData | undefined> => {
        const { spec } = await activeRun(run)
        if (!referableStacks(spec.stack).has(stack))
          throw new RunInputsError('NotReferenced', `Run ${run.namespace}/${run.runName} does not refer to the outputs of Stack ${stack}`)
        return outputsIn(await readOutputsSecret(client, run.namespace, stack))
      }),
    writeOutputs: (run, outputs) =>
      ask(run.namespace, async () => {
        await activeRun(run)
        await writeOutputsSecret(client, run, outputs, run.checkEpoch).catch(rejected)
      }),
    deleteOutputs: run =>
      ask(run.namespace, async () => {
        await activeRun(run)
        await deleteOutputsSecret(client, run).catch(rejected)
      }),
  }
}

/** What the stores may read they may write as a rule: a rejection has another reason, for example a quota. */
function rejected(error: unknown): never {
  if (error instanceof StatusError && error.code >= 400 && error.code < 500 && error.code !== 429 && error.code !== 401)
    throw new RunInputsError('OutputsRejected', `${error.message} (${error.reason})`, { cause: error })
  throw error
}

function inputsNotAllowed(namespace: string, cause: Error): RunInputsError {
  const stores = `${systemNamespace}:${componentAccount('stores')}`
  const grant = `kubectl create rolebinding oarlock-stores --clusterrole=${runInputsRole} --serviceaccount=${stores} -n ${namespace}`
  const message = `the stores may not use Secrets and ConfigMaps of namespace ${namespace}; allow it with: ${grant} (${cause.message})`
  return new RunInputsError('InputsNotAllowed', message, { cause })
}

function restrict(name: string, data: Readonly<Record<string, string>> = {}, keys: SelectedKeys): InputObject {
  const entries = Object.entries(data)
  const selected = keys === 'all' ? entries : entries.filter(([key]) => keys.has(key))
  return { name, keys: entries.map(([key]) => key).sort(), data: Object.fromEntries(selected) }
}

/** Limits what one response contains (invariant 10). */
class InputsBudget {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  take(object: InputObject): InputObject {
    for (const [key, value] of Object.entries(object.data)) this.#bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    if (this.#bytes <= this.#maxBytes) return object
    const message = `the Secrets, ConfigMaps and outputs that the Stack references have more than ${this.#maxBytes} bytes, which is the limit; reference fewer keys`
    throw new RunInputsError('InputsTooLarge', message)
  }
}
