import type { Agent } from 'node:http'
import type { Run } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'

/** Where the status of a Run is written, and its state and log are stored, if that is not the worker's own server. */
export type RunAccess = {
  readonly client: Client
  readonly storeUrl: string
  readonly storeCaCertificate: string | undefined
  /** Connections to the stores. */
  readonly storeAgent: Agent
  /** The Run has ended. */
  release(): void
}

/**
 * Opens the access to a Run; undefined: it is on the worker's own server.
 * @param workerVersion resource version of the Worker; undefined if it is not known.
 * @throws if it cannot be opened: the worker leaves the Run to dispatch.
 */
export type OpenRunAccess = (run: Run, workerVersion: string | undefined) => Promise<RunAccess | undefined>
