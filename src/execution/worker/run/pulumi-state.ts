import { LockedError, StaleEpochError, type StateClient, StateClientError } from '../../../stores/state/index.ts'
import type { RunPulumiState } from '../../engine/index.ts'
import type { RunStopper } from './run-stopper.ts'

export type PulumiStateClient = Pick<
  StateClient,
  | 'readPulumiState'
  | 'readPulumiVersion'
  | 'writePulumiState'
  | 'appendJournal'
  | 'completeJournal'
  | 'keepPulumiState'
  | 'keepJournal'
  | 'encrypt'
  | 'decrypt'
>

/** The state of the Run's Pulumi stack. Stops the Run when the store rejects its writes for good. */
export function createPulumiState(client: PulumiStateClient, stopper: Pick<RunStopper, 'stop' | 'writeSignal'>): RunPulumiState {
  const call = async <T>(work: (options: { signal: AbortSignal }) => Promise<T>): Promise<T> => {
    try {
      return await work({ signal: stopper.writeSignal })
    } catch (error) {
      if (error instanceof StaleEpochError || hasCode(error, 'RunEnded')) stopper.stop({ kind: 'OwnershipLost', detail: error.message })
      else if (error instanceof LockedError || hasCode(error, 'JournalClosed'))
        stopper.stop({ kind: 'StateRejected', detail: error.message })
      throw error
    }
  }
  return {
    readPulumiState: () => call(options => client.readPulumiState(options)),
    readPulumiVersion: () => call(options => client.readPulumiVersion(options)),
    writePulumiState: (bytes, update) =>
      call(options => client.writePulumiState(bytes, { ...options, ...(update !== undefined && { update }) })),
    appendJournal: (update, batch, cliVersion) =>
      call(options => client.appendJournal(update, batch, { ...options, ...(cliVersion !== undefined && { cliVersion }) })),
    completeJournal: update => call(options => client.completeJournal(update, options)),
    // A delayed write says nothing about the right of the Run.
    keepPulumiState: bytes => client.keepPulumiState(bytes, { signal: stopper.writeSignal }),
    keepJournal: batch => client.keepJournal(batch, { signal: stopper.writeSignal }),
    encrypt: values => call(options => client.encrypt(values, options)),
    decrypt: values => call(options => client.decrypt(values, options)),
  }
}

const hasCode = (error: unknown, code: string): error is StateClientError => error instanceof StateClientError && error.code === code
