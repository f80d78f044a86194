import type { StackOutputs } from '../../src/execution/engine/engine.ts'
import { withoutPendingCreates } from '../../src/execution/engine/pulumi/pending-creates.ts'
import { deploymentOf, readOutputs, storedOutputs } from '../../src/execution/engine/pulumi/results.ts'
import { replaceSecrets } from '../../src/execution/engine/pulumi/secret-marks.ts'
import { readReferencedStack } from '../../src/execution/engine/pulumi/stack-reference.ts'
import type { PulumiStackId } from '../../src/execution/pulumi-backend/index.ts'
import { parseUntypedDeployment, type UntypedDeployment } from '../../src/stores/pulumi/index.ts'
import { clientOf } from '../../src/stores/state/state-server.testing.ts'
import type { RecordedExchange, Recording } from './recording.ts'
import { type ParsedAnswer, type ReplayResult, replayRecording } from './replay.ts'
import { openRunEndpoint, type RunEndpoint, type RunEndpointOptions, type StacksServer } from './run-endpoint.ts'

/** Commands that no Run executes: its Stack exists, and its state is replaced and its history read with `oarlock`. */
const foreignCommands = /^(stack (init|rm|ls|history|tag|rename|import|export)|state |whoami|config refresh)/

export type RunReplayOptions = {
  /** The Stack in the state server; each replay has its own. */
  readonly stack: string
  readonly until?: number
  /** Called before each request that is sent. */
  readonly onRequest?: (exchange: RecordedExchange, run: RunEndpoint) => Promise<void> | void
  /** Also those that no Run executes. */
  readonly withForeignCommands?: boolean
  /** A Run that is active already. Default: a new one, after the state of the recording was stored. */
  readonly run?: RunEndpoint
}

export type RunReplay = ReplayResult & {
  /** That of the last command. It has not ended. */
  readonly run: RunEndpoint
  /** The number of requests that were sent. */
  readonly sent: number
}

/**
 * Replays a recording against Runs: each has the endpoint and the backend of a Run, and the state store over HTTP. The CLI's clearing of interrupted
 * creations (an import) is replaced by that of the Run. What the recorded endpoint knew and a Run does not is not compared: its user, tags, the texts of
 * refusals, and of another stack everything but the outputs.
 */
export async function replayOnRun(server: StacksServer, recording: Recording, options: RunReplayOptions): Promise<RunReplay> {
  const { stack, until, withForeignCommands = false } = options
  const { header } = recording
  const id = ownStack(recording)
  const own = pathOf(id)
  const base = { server, stack, id, settings: header.settings, readOther: referenceReader(recording, id) }
  const substitutes = new Map(options.run ? [] : await storeInitialState(base, header.stacks[keyOf(id)]?.deployment))
  let run = options.run ?? (await openRunEndpoint({ ...base, epoch: 2 }))
  let command = ''
  let sent = 0
  let polled: string | undefined
  const result = await replayRecording({
    ...{ recording, substitutes, url: run.url, accessToken: run.accessToken },
    ...(until !== undefined && { until }),
    onAction: async ({ action, detail = '' }) => {
      if (action === 'start') {
        command = detail
        run.beginCommand()
      }
      if (action !== 'abandon') return undefined
      await run.end()
      run = await run.takeOver()
      return run
    },
    onRequest: async exchange => {
      if (foreignCommands.test(command) && !withForeignCommands) return false
      // Outputs of other Stacks are decrypted in the worker.
      if (exchange.path.endsWith('/batch-decrypt') && !exchange.path.startsWith(`${own}/`)) return false
      if (command.includes('--clear-pending-creates') && exchange.path === `${own}/import`) {
        polled = `${own}/update/${(JSON.parse(textOf(exchange.answer)) as { updateId: string }).updateId}`
        await clearPendingCreates(run)
        return false
      }
      if (exchange.path === polled) return false
      await options.onRequest?.(exchange, run)
      sent++
      return true
    },
    comparable: (exchange, answer) => comparable(exchange, answer, own),
  })
  return { ...result, sent, run }
}

/** That of the first command which names one. */
export function ownStack({ lines }: Recording): PulumiStackId {
  for (const line of lines) {
    const found = line.kind === 'action' && line.action === 'start' && / (\w+)\/(\w+)\/(\w+)$/.exec(line.detail ?? '')
    if (found) return { organization: found[1]!, project: found[2]!, stack: found[3]! }
  }
  throw new Error('no command of the recording names a stack')
}

const keyOf = ({ organization, project, stack }: PulumiStackId) => `${organization}/${project}/${stack}`
const pathOf = (id: PulumiStackId) => `/api/stacks/${keyOf(id)}`
const textOf = (base64 = '') => Buffer.from(base64, 'base64').toString()

/** Stores the state that the conversation began with, its secrets encrypted by the state store. @returns recorded ciphertexts, with the stored ones. */
async function storeInitialState(
  { server, stack, id }: Omit<RunEndpointOptions, 'epoch'>,
  deployment: string | undefined,
): Promise<[string, string][]> {
  if (deployment === undefined) return []
  const client = clientOf(server, 1, { stack, runName: `${stack}-1` })
  await client.lock()
  const found = [...new Set(deployment.match(/"[A-Za-z0-9+/=]{16,}"/g) ?? [])].map(each => each.slice(1, -1))
  const recorded = found.filter(each => decryptRecorded(id, each) !== undefined)
  const encrypted = recorded.length > 0 ? await client.encrypt(recorded.map(each => decryptRecorded(id, each)!)) : []
  const substitutes = recorded.map((each, i): [string, string] => [each, encrypted[i]!.toString('base64')])
  let text = deployment
  for (const [from, to] of substitutes) text = text.replaceAll(`"${from}"`, `"${to}"`)
  await client.writePulumiState(Buffer.from(text))
  await client.unlock()
  await client.close()
  return substitutes
}

/** What {@link MemoryBackend} has encrypted; undefined for anything else. */
function decryptRecorded(id: PulumiStackId, base64: string): Buffer | undefined {
  const bytes = Buffer.from(base64, 'base64')
  const prefix = `${keyOf(id)}:`
  return bytes.toString('latin1').startsWith(prefix) ? bytes.subarray(prefix.length).reverse() : undefined
}

/** Finds the other stacks of a recording as Stacks of the namespace, which the Run's Stack names. */
function referenceReader({ header }: Recording, { organization, ...own }: PulumiStackId): RunEndpointOptions['readOther'] {
  const others = Object.entries(header.stacks).filter(([key]) => key !== keyOf({ organization, ...own }))
  const readStackOutputs = async (name: string): Promise<StackOutputs | undefined> => {
    const [key = '', stack] = others.find(([each]) => each.replaceAll('/', '-') === name) ?? []
    if (stack?.deployment === undefined) return undefined
    const [namespace = '', project = '', other = ''] = key.split('/')
    const id = { organization: namespace, project, stack: other }
    const decrypt = async (values: readonly Uint8Array[]) => values.map(each => decryptRecorded(id, Buffer.from(each).toString('base64'))!)
    return { outputs: await readOutputs(deploymentOf(Buffer.from(stack.deployment)), decrypt), pulumiStack: `${project}/${other}` }
  }
  const dependsOn = others.map(([key]) => ({ name: key.replaceAll('/', '-') }))
  const stack = { namespace: organization, name: own.stack, uid: 'uid' }
  return async id => await readReferencedStack({ spec: { engine: 'pulumi', dependsOn }, stack, readStackOutputs }, id)
}

/** As `session.ts` does before an update, with `pendingCreates: Clear`. */
async function clearPendingCreates({ state }: RunEndpoint): Promise<void> {
  const newest = await state.readPulumiState()
  const cleared =
    newest &&
    withoutPendingCreates(
      { spec: { engine: 'pulumi', pulumi: { pendingCreates: 'Clear' } } },
      parseUntypedDeployment(newest.bytes.toString()),
    )
  if (cleared) await state.writePulumiState(Buffer.from(JSON.stringify(cleared)))
}

function comparable({ method, path }: RecordedExchange, { status, body }: ParsedAnswer, own: string): unknown {
  if (status === 403 || status === 413 || path.startsWith('/api/user')) return status
  if (status !== 200) return { status, body }
  if (path.endsWith('/batch-encrypt')) return (body as { ciphertexts: unknown[] }).ciphertexts.length
  if (path.endsWith('/export')) {
    const exported = body as UntypedDeployment
    if (path.startsWith(`${own}/`)) return comparableState(exported)
    const outputs = storedOutputs(exported.deployment ?? {})
    return replaceSecrets(outputs, () => 'secret')
  }
  if (method !== 'GET' || !isStackPath(path)) return body
  const { tags: _, version: __, ...others } = body as Record<string, unknown>
  return others
}

/** When and by which version of the CLI it was written depends on the store. Empty lists may be left out. */
function comparableState({ deployment, ...rest }: UntypedDeployment): unknown {
  const { manifest: _, resources = [], pending_operations: pending = [], ...others } = deployment ?? {}
  return { ...rest, hasDeployment: deployment !== null, resources, pending, others }
}

const isStackPath = (path: string) => /^\/api\/stacks\/\w+\/\w+\/\w+$/.test(path)
