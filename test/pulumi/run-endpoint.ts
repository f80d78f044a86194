import type { RunPulumiState } from '../../src/execution/engine/engine.ts'
import { RunBackend } from '../../src/execution/engine/pulumi/run-backend.ts'
import { createPulumiHandler, listenPulumi, type PulumiStackId } from '../../src/execution/pulumi-backend/index.ts'
import { createPulumiState } from '../../src/execution/worker/run/pulumi-state.ts'
import { clientOf, type StateServer, withStateServer } from '../../src/stores/state/state-server.testing.ts'
import type { EndpointSettings } from './recording.ts'

/** A state server whose Stacks are all those that a test names: the UID of each is its name. `atEnd`: what a failed test leaves open. */
export type StacksServer = StateServer & { readonly atEnd: Set<() => Promise<void>> }

export async function withStateServerOfStacks(
  work: (server: StacksServer) => Promise<void>,
  limits: Parameters<typeof withStateServer>[1] = {},
): Promise<void> {
  const atEnd = new Set<() => Promise<void>>()
  const workAndClose = async (server: StateServer) => {
    try {
      await work(Object.assign(server, { atEnd }))
    } finally {
      for (const close of atEnd) await close()
    }
  }
  await withStateServer(workAndClose, {
    ...limits,
    handler: {
      authorize: async ({ stack, basicPassword, runName }) =>
        runName !== undefined && basicPassword === 'worker'
          ? { allowed: true, stackUid: stack, access: 'run' }
          : { allowed: false, code: 403, message: 'a Run is required' },
    },
  })
}

export type RunEndpoint = {
  readonly epoch: number
  readonly runName: string
  /** For `PULUMI_BACKEND_URL` and `PULUMI_ACCESS_TOKEN`. */
  readonly url: string
  readonly accessToken: string
  readonly state: RunPulumiState
  /** Why the Run would be stopped: the state store has refused its writes for good. */
  readonly stops: readonly string[]
  /** What no answer shows. */
  readonly errors: readonly unknown[]
  beginCommand(): void
  /** All programs of a command have ended, however: what a command leaves becomes a version. */
  endCommand(): Promise<void>
  /** The Run ends in an orderly way, also after its CLI was killed. */
  end(): Promise<void>
  /** The next Run of the Stack. @throws {LockedError} while this one has the lock, and is not declared ended (`server.abandoned`). */
  takeOver(): Promise<RunEndpoint>
  /** The worker is killed together with the CLI: nothing more is sent, and the Run keeps the lock. */
  killWorker(): Promise<void>
}

export type RunEndpointOptions = {
  readonly server: StacksServer
  /** In the state server. */
  readonly stack: string
  readonly epoch: number
  /** Of the CLI. */
  readonly id: PulumiStackId
  readonly readOther: (stack: PulumiStackId) => Promise<Uint8Array | undefined>
  readonly settings: EndpointSettings
}

/** The endpoint of a Run, wired as `session.ts` and the worker do it, with the lock of its Stack. @throws {LockedError} */
export async function openRunEndpoint(options: RunEndpointOptions): Promise<RunEndpoint> {
  const { server, stack, epoch, id, readOther, settings } = options
  const runName = `${stack}-${epoch}`
  const client = clientOf(server, epoch, { stack, runName })
  try {
    await client.lock()
  } catch (error) {
    await client.close()
    throw error
  }
  const stops: string[] = []
  const stopper = { stop: ({ kind }: { kind: string }) => void stops.push(kind), writeSignal: new AbortController().signal }
  const state = createPulumiState(client, stopper)
  const accessToken = crypto.randomUUID()
  const errors: unknown[] = []
  const backend = new RunBackend({
    ...{ state, stack: id, readOther, onEvents: () => {} },
    onRefused: error => handler.fence(error.message),
  })
  const { testedCliVersions, deltaCutoffBytes } = settings
  const handler = createPulumiHandler({
    ...{ backend, accessToken, onError: (error: unknown) => errors.push(error) },
    ...(testedCliVersions && { testedCliVersions }),
    ...(deltaCutoffBytes !== undefined && { deltaCutoffBytes }),
  })
  const endpoint = await listenPulumi(handler)
  const close = async () => {
    if (!server.atEnd.delete(close)) return
    await endpoint.close()
    await client.close()
  }
  server.atEnd.add(close)
  const endCommand = async () => {
    for (const { number } of await handler.abandonUpdates()) await state.completeJournal(number).catch(() => {})
  }
  return {
    ...{ epoch, runName, url: endpoint.url, accessToken, state, stops, errors, endCommand },
    beginCommand: () => backend.beginCommand(),
    takeOver: async () => await openRunEndpoint({ ...options, epoch: epoch + 1 }),
    end: async () => {
      try {
        await endCommand()
        await client.unlock()
      } finally {
        await close()
      }
    },
    killWorker: close,
  }
}
