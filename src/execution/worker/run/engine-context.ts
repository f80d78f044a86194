import { isMutating, listPendingOperations, type Run } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import type { Json } from '../../../kubernetes/object/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import type { DependencyHost } from '../../dependencies/index.ts'
import type { EngineContext, ProviderUsage } from '../../engine/index.ts'
import type { ContentStore, RunDirectory } from '../../workspace/index.ts'
import type { EngineEnvironment } from '../engine-environment.ts'
import type { RunInputs } from './inputs.ts'
import { createPulumiState, type PulumiStateClient } from './pulumi-state.ts'
import { readStackOutputs } from './read-stack-outputs.ts'
import type { RunLog } from './run-log.ts'
import type { RunPrograms } from './run-programs.ts'
import type { RunReporter } from './run-reporter.ts'
import type { RunStateFile } from './run-state-file.ts'
import type { RunStopper } from './run-stopper.ts'

export type EngineContextOptions = {
  client: Client
  run: Run
  directory: RunDirectory
  sourceDigest: string
  /** The directory of the Stack's source, inside `directory.work`. */
  sourceDirectory: string
  inputs: RunInputs
  /** Variables of the worker's own environment that the engine gets; those of the Stack win. */
  environment: Readonly<EngineEnvironment>
  cacheDir: string
  contentStore: ContentStore
  providerUsage: ProviderUsage
  dependencies: DependencyHost
  showProgram(path: string): void
  atEnd(release: () => Promise<void>): void
  pendingOperations: EngineContext['pendingOperations']
  state: Pick<StateClient, 'readInventory' | 'writeInventory' | 'getOutputs'> & PulumiStateClient
  stateFile: RunStateFile
  programs: RunPrograms
  reporter: Pick<RunReporter, 'reportProgress'>
  stopper: RunStopper
  log: RunLog
}

/** Everything an engine gets of its Run. */
export function createEngineContext(options: EngineContextOptions): EngineContext {
  const { client, run, directory, inputs, state, stateFile, programs, reporter, stopper, log } = options
  const { name, uid } = run.spec.stackRef
  const storeOptions = { signal: stopper.writeSignal }
  return {
    spec: run.spec.stack,
    stack: { namespace: run.metadata.namespace ?? 'default', name, uid },
    epoch: run.spec.epoch,
    runName: run.metadata.name,
    isDestroy: run.spec.type === 'Destroy',
    mayWrite: isMutating(run.spec.type),
    directory: options.sourceDirectory,
    sourceDigest: options.sourceDigest,
    sourceRoot: directory.work,
    scratch: directory.scratch,
    inputs: directory.inputs,
    private: directory.private,
    files: directory.files,
    statePath: stateFile.path,
    pulumiState: createPulumiState(state, stopper),
    env: { ...options.environment.env, ...inputs.env },
    credentialNames: [...options.environment.selected.filter(name => inputs.env[name] === undefined), ...inputs.secretEnvNames],
    workerEnvNames: Object.keys(options.environment.env).filter(name => inputs.env[name] === undefined),
    variables: inputs.variables,
    sensitiveNames: inputs.sensitiveNames,
    run: programs.run,
    signal: stopper.signal,
    log: line => log.append(line),
    progress: ({ current, creating, running, ...counts }) =>
      reporter.reportProgress(
        { ...counts, ...(current !== undefined && { current: log.mask(current) }) },
        (creating || running) &&
          listPendingOperations([
            ...(creating ?? []).map(address => ({ type: 'creating', urn: log.mask(address) })),
            ...(running ?? []).map(name => ({ type: 'running', urn: log.mask(name) })),
          ]),
      ),
    pendingOperations: options.pendingOperations,
    client,
    kubeconfig: inputs.kubeconfig,
    secrets: inputs.engineSecrets,
    cacheDir: options.cacheDir,
    contentStore: options.contentStore,
    providerUsage: options.providerUsage,
    dependencies: options.dependencies,
    readStackOutputs: other => readStackOutputs(state, other, stopper.signal, secrets => log.addSecrets(secrets)),
    showProgram: options.showProgram,
    atEnd: options.atEnd,
    inventory: {
      read: async () => {
        const found = await state.readInventory(storeOptions)
        return found && (JSON.parse(found.bytes.toString('utf8')) as Json)
      },
      write: async value => {
        await state.writeInventory(Buffer.from(JSON.stringify(value)), storeOptions).catch(error => {
          stateFile.handleStoreError(error)
          throw error
        })
      },
    },
  }
}
