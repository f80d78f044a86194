import { join } from 'node:path'
import { oarlockCommand } from '../../../api/index.ts'
import { hideCredentials } from '../../../kubernetes/util/index.ts'
import { type Deployment, interruptedOperations, parseUntypedDeployment, parseUrn } from '../../../stores/pulumi/index.ts'
import { createPulumiHandler, listenPulumi, type PulumiEvent, type PulumiHandler, type PulumiStackId } from '../../pulumi-backend/index.ts'
import type { EngineContext, RunPulumiState } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { openExternalSession } from './external/external-session.ts'
import { installPackages } from './install-packages.ts'
import { createLoopbackRelay, hasOwnLoopback } from './loopback-relay.ts'
import { pendingCreates, pendingImport, rejectPendingCreates, withImported, withoutPendingCreates } from './pending-creates.ts'
import { linkPlugins } from './plugin-cache.ts'
import { type PulumiProject, readProject } from './project-file.ts'
import type { CliResult, PulumiCli } from './pulumi-cli.ts'
import { pluginsOfProgram, pluginsOfState, validPlugins } from './required-plugins.ts'
import { countResources, deploymentOf, liveResources } from './results.ts'
import { RunBackend } from './run-backend.ts'
import { writeStackConfig } from './stack-config.ts'
import { readReferencedStack } from './stack-reference.ts'
import { StateInMemory } from './state-in-memory.ts'

/** Set by Oarlock: with a value of the user the state would be elsewhere. */
const reservedVariables = ['PULUMI_BACKEND_URL', 'PULUMI_ACCESS_TOKEN', 'PULUMI_STACK', 'PULUMI_API']

/** `version`: a number of the state store, or a digest of the state in the user's own backend. */
export type StackState = { readonly version: number | string; readonly deployment: Deployment }

/** What one Run knows of its stack, from `prepare` to its end. */
export type Session = {
  readonly project: PulumiProject
  /** For `--stack`. */
  readonly stack: string
  /** `<project>/<stack>`, by which other Stacks refer to it. */
  readonly reference: string
  /** For `--config-file`. */
  readonly configFile: string
  /** Gets the events of the command that runs. */
  onEvents: (events: readonly PulumiEvent[]) => void
  /** Runs a command on the stack; afterwards everything that it started has ended. */
  run(args: readonly string[], options?: { isQuiet?: boolean }): Promise<CliResult>
  readState(): Promise<StackState>
  /** Removes resources from the state whose creation was interrupted. @returns their URNs. Managed state only. */
  clearPendingCreates(): Promise<string[]>
  /**
   * Adds resources to the state whose creation was interrupted and whose IDs the Stack names. `refresh` has the CLI read them. A Run that may not write
   * sees them only itself. Managed state only.
   * @returns their URNs. @throws {EngineError} PendingCreates
   */
  importPendingCreates(refresh: (urns: readonly string[]) => Promise<void>): Promise<readonly string[]>
  decrypt: ((ciphertexts: readonly Uint8Array[]) => Promise<readonly Uint8Array[]>) | undefined
}

export const isManaged = ({ spec }: Pick<EngineContext, 'spec'>): boolean => spec.state !== 'External'

/**
 * Opens what the commands of a Run need: its configuration and, for Managed state, the endpoint on which it serves the state store to the CLI.
 * @throws {EngineError} BackendInFiles, InvalidConfiguration. {StateClientError} if the state cannot be read.
 */
export async function openSession(context: EngineContext, cli: PulumiCli): Promise<Session> {
  const project = await readProject(context)
  const name = context.spec.pulumi?.stack ?? context.stack.name
  if (isManaged(context)) rejectOtherBackends(context, project)
  // First: what a package is depends on the source as it was fetched.
  for (const program of await cli.companions()) context.showProgram(program)
  const packages = await installPackages(context, cli, project)
  const opening = { context, cli, project, name, env: { ...baseEnvironment(context), ...packages.env } }
  const ofProgram = await pluginsOfProgram(project, packages)
  const { session, deployment } = isManaged(context)
    ? await openManaged(opening)
    : { session: await openExternalSession(opening), deployment: {} }
  const required = validPlugins([...ofProgram, ...pluginsOfState(deployment)])
  await linkPlugins(context, cli, { required, home: pulumiHome(context) })
  return session
}

type Opening = { context: EngineContext; cli: PulumiCli; project: PulumiProject; name: string; env: Record<string, string> }

async function openManaged({ context, cli, project, name, env: base }: Opening): Promise<{ session: Session; deployment: Deployment }> {
  const id: PulumiStackId = { organization: context.stack.namespace, project: project.name, stack: name }
  const accessToken = crypto.randomUUID()
  const stored = context.pulumiState
  let session: Session | undefined
  // While interrupted creations are imported, and in a Plan afterwards.
  let inMemory: StateInMemory | undefined
  const state = switchable(() => inMemory ?? stored)
  // An approval covers the state before the import: the plan that was approved has been made with the same import.
  let importedFrom: number | undefined
  const backend = new RunBackend({
    ...{ state, stack: id, readOther: other => readReferencedStack(context, other) },
    onEvents: events => session?.onEvents(events),
    onRefused: error => handler.fence(error.message),
  })
  const handler: PulumiHandler = createPulumiHandler({
    ...{ backend, accessToken },
    onError: error => context.log(`the state endpoint of the Run failed: ${(error as Error).message}`),
  })
  const relay = hasOwnLoopback(context) ? await createLoopbackRelay(context) : undefined
  const endpoint = await listenPulumi(handler, relay && { socketPath: relay.socketPath })
  context.atEnd(() => endpoint.close())
  const encrypt = (values: readonly Uint8Array[]) => stored.encrypt(values)
  const configFile = await writeStackConfig(context, { project, stack: name, encrypt })
  const env = { ...base, PULUMI_BACKEND_URL: relay?.url ?? endpoint.url, PULUMI_ACCESS_TOKEN: accessToken }
  session = {
    ...{ project, reference: `${id.project}/${id.stack}`, stack: `${id.organization}/${id.project}/${id.stack}`, configFile },
    onEvents: () => {},
    run: async (args, options) => {
      backend.beginCommand()
      try {
        return await cli.run(context, { args, env, wrap: relay?.wrap, ...options })
      } finally {
        // Everything that the CLI started has ended: what it left becomes a version, with its pending operations.
        for (const { number } of await handler.abandonUpdates()) {
          // The entries are stored all the same: the next reader gets what they result in.
          await state.completeJournal(number).catch((error: Error) => {
            context.log(`the journal of the interrupted command did not become a version of the state yet: ${error.message}`)
          })
        }
      }
    },
    readState: async () => {
      const newest = await state.readPulumiState()
      return { version: importedFrom ?? newest?.version ?? 0, deployment: deploymentOf(newest?.bytes) }
    },
    clearPendingCreates: async () => {
      const newest = await stored.readPulumiState()
      const before = newest && parseUntypedDeployment(newest.bytes.toString('utf8'))
      const after = before && withoutPendingCreates(context, before)
      if (!after) return []
      await stored.writePulumiState(Buffer.from(JSON.stringify(after)))
      return pendingCreates(before.deployment ?? {}).map(({ urn }) => urn)
    },
    importPendingCreates: async refresh => {
      const newest = await stored.readPulumiState()
      const version = newest?.version ?? 0
      const found = pendingImport(context, newest && parseUntypedDeployment(newest.bytes.toString('utf8')))
      if (!found) return []
      const memory = new StateInMemory(stored, found.state, version)
      inMemory = memory
      await refresh(found.urns)
      memory.state = withImported(context, found, memory.state)
      if (!context.mayWrite) return found.urns
      inMemory = undefined
      await stored.writePulumiState(Buffer.from(JSON.stringify(memory.state)))
      importedFrom = version
      return found.urns
    },
    decrypt: values => stored.decrypt(values),
  }
  const { deployment } = await session.readState()
  rejectOtherStack(id, deployment)
  context.pendingOperations(operationsOf(deployment), { isOwn: false })
  rejectPendingCreates(context, deployment)
  return { session, deployment }
}

/** The operations that were interrupted, without the resources. */
export const operationsOf = (deployment: Deployment) =>
  interruptedOperations(deployment).map(({ type, resource }) => ({ type, urn: resource.urn }))

/** Each call goes to what `current` returns then. */
const switchable = (current: () => RunPulumiState): RunPulumiState => ({
  readPulumiState: () => current().readPulumiState(),
  readPulumiVersion: () => current().readPulumiVersion(),
  writePulumiState: bytes => current().writePulumiState(bytes),
  appendJournal: (update, batch, cliVersion) => current().appendJournal(update, batch, cliVersion),
  completeJournal: update => current().completeJournal(update),
  keepPulumiState: bytes => current().keepPulumiState(bytes),
  keepJournal: batch => current().keepJournal(batch),
  encrypt: values => current().encrypt(values),
  decrypt: values => current().decrypt(values),
})

export const pulumiHome = ({ scratch }: Pick<EngineContext, 'scratch'>): string => join(scratch, 'pulumi-home')

function baseEnvironment({ scratch }: EngineContext): Record<string, string> {
  return {
    PULUMI_HOME: pulumiHome({ scratch }),
    PULUMI_SKIP_UPDATE_CHECK: 'true',
    PULUMI_SUPPRESS_NEO_LINK: 'true',
    // Variables of a CI system around the worker say nothing about this Run.
    PULUMI_DISABLE_CI_DETECTION: 'true',
  }
}

/** A backend that the source or the environment names may have resources that exist already: an empty state would create them again. */
function rejectOtherBackends(context: EngineContext, project: PulumiProject): void {
  const variable = reservedVariables.find(name => context.env[name] !== undefined)
  const { backendUrl, fileName } = project
  if (variable === undefined && backendUrl === undefined) return
  const what =
    variable === undefined
      ? `${fileName} has backend.url ${JSON.stringify(hideCredentials(backendUrl ?? ''))}`
      : `the environment sets ${variable} (spec.env of the Stack or spec.engineEnvironment of the WorkerPool)`
  const importCommand = oarlockCommand('state import', context.stack)
  throw new EngineError(
    'BackendInFiles',
    `${what}, but spec.state of the Stack is Managed, so the resources in that state would be created a second time; keep it with "state: External" in the Stack's spec, or import it with "${importCommand} --from FILE" (from "pulumi stack export") and then remove the ${variable === undefined ? 'backend' : 'variable'}`,
    { retryable: false },
  )
}

/** Every URN in the state of another project or stack differs: each of its resources would be replaced. */
function rejectOtherStack({ project, stack: name }: PulumiStackId, deployment: Deployment): void {
  if (countResources(deployment) === 0) return
  const other = liveResources(deployment).find(({ urn }) => !urn.startsWith(`urn:pulumi:${name}::${project}::`))
  if (!other) return
  const { stack: found, project: foundProject } = parseUrn(other.urn)
  throw new EngineError(
    'InvalidConfiguration',
    `the state has resources of stack ${JSON.stringify(found)} in project ${JSON.stringify(foundProject)}, but this Stack is ${JSON.stringify(name)} in project ${JSON.stringify(project)}, so all of them would be created again; set spec.pulumi.stack to ${JSON.stringify(found)} and name the project ${JSON.stringify(foundProject)} in Pulumi.yaml`,
    { retryable: false },
  )
}
