import { join } from 'node:path'
import type { Run } from '../../../api/index.ts'
import { StateClient } from '../../../stores/state/index.ts'
import type { RunDirectory } from '../../workspace/index.ts'
import type { ExecuteOptions } from './execution.ts'

/** The state of the Run's Stack in the state store, with the epoch of the Run. */
export function openState({ storeUrl, storeAgent, token, run }: ExecuteOptions): StateClient {
  return new StateClient({
    baseUrl: storeUrl,
    agent: storeAgent,
    token,
    namespace: run.metadata.namespace ?? 'default',
    stack: run.spec.stackRef.name,
    runName: run.metadata.name,
    epoch: run.spec.epoch,
  })
}

/** Undefined for `state: External`, where the user's own backend keeps it, and for engine pulumi, whose CLI writes to the store. */
export function statePathOf({ spec }: Run, directory: RunDirectory): string | undefined {
  return spec.stack.state === 'External' || spec.stack.engine === 'pulumi' ? undefined : join(directory.scratch, 'terraform.tfstate')
}
