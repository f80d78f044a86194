import { join } from 'node:path'
import type { ApplyResult, Detection, Engine, EngineContext, PlanDiff, PlanOptions, PlanResult, WarmContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { maxPlanBytes } from '../file-limits.ts'
import { jsonDigest } from '../json-digest.ts'
import { commonOptions, executionOptions, operationOptions, selectedTargets } from './arguments.ts'
import { installPackages } from './install-packages.ts'
import { ObservedEvents } from './observed-events.ts'
import { formatPending } from './pending-creates.ts'
import { addSteps, formatChange, isImplied, type ParsedPlan, parsePlanFile, withRefreshed } from './plan-file.ts'
import { linkPlugins } from './plugin-cache.ts'
import { readProject } from './project-file.ts'
import { type CliResult, PulumiCli } from './pulumi-cli.ts'
import { pluginsOfProgram } from './required-plugins.ts'
import { countResources, liveResources, readOutputs } from './results.ts'
import { isManaged, openSession, operationsOf, pulumiHome, type Session } from './session.ts'
import { type PlannedFor, planDigest, readStoredPlan, type StoredPlan } from './stored-plan.ts'
import { isCounted } from './urn.ts'

/**
 * The Pulumi CLI. With Managed state it reads and writes the state store through Pulumi's own backend protocol, which the Run serves on the
 * loopback interface: an operation is acknowledged to the CLI when the store has it on disk (invariant 5).
 * `env` is the environment of this process, in which the binary is searched for; tests pass their own.
 */
export function createPulumiEngine(env: Record<string, string | undefined> = process.env): Engine {
  return new PulumiEngine(env)
}

const commands = { apply: 'up', destroy: 'destroy', refresh: 'refresh' } as const

class PulumiEngine implements Engine {
  readonly name = 'pulumi'
  readonly #cli: PulumiCli
  /** Of each Run that has been prepared. */
  readonly #sessions = new WeakMap<EngineContext, Session>()

  constructor(env: Record<string, string | undefined>) {
    this.#cli = new PulumiCli(env)
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#cli.detect(env, options)
  }

  readonly warm = async (context: WarmContext): Promise<void> => {
    const project = await readProject(context)
    for (const program of await this.#cli.companions()) context.showProgram(program)
    const packages = await installPackages(context, this.#cli, project)
    await linkPlugins(context, this.#cli, { required: await pluginsOfProgram(project, packages), home: pulumiHome(context) })
  }

  async prepare(context: EngineContext): Promise<void> {
    const { version } = await this.#cli.find()
    context.log(`Pulumi ${version}`)
    const session = await openSession(context, this.#cli)
    this.#sessions.set(context, session)
    await this.#importPendingCreates(context, session)
  }

  async plan(context: EngineContext, { destroy, refreshOnly, options: runOptions }: PlanOptions = {}): Promise<PlanResult> {
    const session = this.#sessionOf(context)
    const intent = destroy ? 'destroy' : refreshOnly ? 'refresh' : 'apply'
    requireBinding(context, intent)
    const state = await session.readState()
    const resources = liveResources(state.deployment)
    const known = new Set(resources.map(({ urn }) => urn))
    const options = operationOptions(context, { intent, run: runOptions, isInState: urn => known.has(urn) })
    const targets = selectedTargets(context, intent, runOptions)
    const isSelected = (urn: string) => !targets || context.spec.pulumi?.targetDependents === true || targets.includes(urn)
    const written = join(context.scratch, 'plan.json')
    const command = intent === 'apply' ? ['preview', `--save-plan=${written}`] : [commands[intent], '--preview-only']
    const { result, events } = await this.#run(
      context,
      session,
      [...command, '--diff', ...options, ...executionOptions(context, true, intent)],
      true,
    )
    if (result.exitCode !== 0) {
      const reason = events.violatesPolicy ? 'InvalidConfiguration' : 'PlanFailed'
      this.#cli.fail(context, reason, command[0] ?? '', result, events.diagnostics)
    }
    const constraint = intent === 'apply' ? await movePlanFile(context, written) : undefined
    const planned =
      constraint === undefined ? previewOf(events) : withRefreshed(parsePlanFile(constraint, resources, isSelected), events.changes())
    const stored: StoredPlan = {
      ...{ engine: 'pulumi', intent, counts: planned.counts, hasChanges: planned.hasChanges, options },
      summary: planned.changes.filter(change => !isImplied(change)).map(formatChange),
      ...(constraint !== undefined && { constraint }),
    }
    const file = join(context.inputs, `${intent}.plan.json`)
    await context.files.write(file, JSON.stringify(stored))
    const diff: PlanDiff | undefined = planned.hasChanges
      ? { text: diffText(result), document: { intent, counts: planned.counts, changes: planned.changes.map(toDocument) } }
      : undefined
    return { ...toResult(context, stored, plannedFor(context, state.version)), file, summary: [...stored.summary], diff }
  }

  async readPlan(context: EngineContext, file: string): Promise<PlanResult> {
    const state = await this.#sessionOf(context).readState()
    const stored = await readStoredPlan(context, file)
    requireBinding(context, stored.intent)
    return { ...toResult(context, stored, plannedFor(context, state.version)), file, summary: [...stored.summary] }
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const session = this.#sessionOf(context)
    if (plan.file === undefined) throw new TypeError('plan.file is missing: only a plan made by this engine can be applied')
    const cleared = await session.clearPendingCreates()
    if (cleared.length > 0) {
      context.log(`forgot the interrupted creation of ${formatPending(cleared)} (spec.pulumi.pendingCreates: Clear)`)
      await this.#reportPending(context, session, { isOwn: false })
    }
    if (!plan.hasChanges) return { ...(await this.#results(context, session)), changed: false }
    const { intent, constraint, options } = await readStoredPlan(context, plan.file)
    // Only what was approved binds the update: the constraint covers the outputs too, and some differ in each execution, such as a time.
    const constraintFile =
      constraint !== undefined && context.spec.approval === 'Manual' ? join(context.inputs, 'constraint.json') : undefined
    if (constraint !== undefined && constraintFile !== undefined) await context.files.write(constraintFile, constraint)
    const args = [
      ...[commands[intent], '--yes', '--skip-preview', '--suppress-outputs'],
      ...(constraintFile === undefined ? [] : [`--plan=${constraintFile}`]),
      ...[...options, ...executionOptions(context, false, intent)],
    ]
    const running = this.#run(context, session, args, false, plan.add + plan.change + plan.destroy)
    const { result, events } = await running.finally(() => this.#reportPending(context, session, { isOwn: true }))
    if (result.exitCode !== 0) {
      if (constraintFile !== undefined && isUnexplained(context, result, events)) throw outputsDiffer()
      const reason = intent === 'destroy' ? 'DestroyFailed' : 'ApplyFailed'
      this.#cli.fail(context, reason, commands[intent], result, events.diagnostics)
    }
    return { ...(await this.#results(context, session)), changed: true }
  }

  async readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>> {
    return await this.#results(context, this.#sessionOf(context))
  }

  /** Runs an operation on the stack. `isQuiet`: what it prints is a diff, which is stored; the log gets the errors. */
  async #run(
    context: EngineContext,
    session: Session,
    args: readonly string[],
    isQuiet: boolean,
    total = 0,
  ): Promise<{ result: CliResult; events: ObservedEvents }> {
    const events = new ObservedEvents(total)
    session.onEvents = list => {
      for (const event of [...list].sort((a, b) => a.sequence - b.sequence)) {
        const progress = events.add(event)
        if (progress) context.progress(progress)
      }
    }
    const [command = '', ...rest] = args
    const where = [`--stack=${session.stack}`, `--config-file=${session.configFile}`]
    const result = await session.run([command, ...where, ...commonOptions, ...rest], { isQuiet })
    if (isQuiet && result.exitCode !== 0) for (const line of [...result.lines, ...result.errors]) context.log(line)
    // What an update prints itself.
    if (isQuiet)
      for (const { severity, summary, detail = '' } of events.diagnostics)
        if (severity === 'warning') context.log(`warning: ${summary}: ${detail}`)
    return { result, events }
  }

  /** Before the plan, which is then one of what exists. */
  async #importPendingCreates(context: EngineContext, session: Session): Promise<void> {
    const imported = await session.importPendingCreates(async urns => {
      const options = [
        ...urns.map(urn => `--target=${urn}`),
        ...(context.spec.pulumi?.runProgram ? ['--run-program'] : []),
        ...executionOptions(context, false, 'refresh'),
      ]
      const { result, events } = await this.#run(
        context,
        session,
        ['refresh', '--yes', '--skip-preview', '--suppress-outputs', ...options],
        false,
      )
      if (result.exitCode !== 0) this.#cli.fail(context, 'PendingCreates', 'refresh', result, events.diagnostics)
    })
    if (imported.length === 0) return
    context.log(`imported ${formatPending(imported)} (spec.pulumi.importPendingCreates)`)
    await this.#reportPending(context, session, { isOwn: false })
  }

  /** What is interrupted in the state after a command. `isOwn`: the command may have been interrupted itself. */
  async #reportPending(context: EngineContext, session: Session, { isOwn }: { isOwn: boolean }): Promise<void> {
    const onError = (error: unknown) => context.log(`which operations are interrupted is not known: ${(error as Error).message}`)
    const state = isManaged(context) ? await session.readState().catch(onError) : undefined
    if (!state) return
    const operations = operationsOf(state.deployment)
    context.pendingOperations(operations, { isOwn })
    const created = operations.filter(({ type }) => type === 'creating').map(({ urn }) => urn)
    if (created.length > 0) context.log(`the creation of these resources was interrupted, they may exist: ${formatPending(created)}`)
  }

  async #results(context: EngineContext, session: Session): Promise<Omit<ApplyResult, 'changed'>> {
    const { deployment } = await session.readState()
    const isOwn = isManaged(context) && (deployment.secrets_providers?.type ?? 'service') === 'service'
    const outputs = isOwn && session.decrypt ? await readOutputs(deployment, session.decrypt) : await this.#outputsOfCli(context, session)
    return { outputs, resources: countResources(deployment), pulumiStack: session.reference }
  }

  /** For secrets of another provider, which only the CLI can decrypt. */
  async #outputsOfCli(context: EngineContext, session: Session): Promise<ApplyResult['outputs']> {
    const read = async (...more: string[]) => {
      const args = ['stack', 'output', '--json', '--non-interactive', `--stack=${session.stack}`, ...more]
      const result = await session.run(args, { isQuiet: true })
      if (result.exitCode !== 0) this.#cli.fail(context, 'ApplyFailed', 'stack output', result)
      return JSON.parse(result.lines.join('\n') || '{}') as Record<string, import('../../../kubernetes/object/index.ts').Json>
    }
    const [hidden, shown] = [await read(), await read('--show-secrets')]
    const isSensitive = (name: string) => JSON.stringify(hidden[name]) !== JSON.stringify(shown[name])
    return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, { value, sensitive: isSensitive(name) }]))
  }

  #sessionOf(context: EngineContext): Session {
    const session = this.#sessions.get(context)
    if (!session) throw new TypeError('the Run was not prepared')
    return session
  }
}

/**
 * Where a Stack requires approval, what is applied must be what was approved. `up` is constrained by the CLI's plan. A destruction deletes what the
 * state has, and the digest covers its version. What a refresh finds is known only when it runs.
 */
function requireBinding({ spec }: EngineContext, intent: PlanResult['intent']): void {
  if (spec.approval !== 'Manual' || intent !== 'refresh' || spec.pulumi?.approvalBinding === 'Inputs') return
  throw new EngineError(
    'ApprovalNotBound',
    'the CLI cannot bind a refresh to what was approved: it has no plan for it; allow that an approval covers the source, the configuration and the state only with spec.pulumi.approvalBinding: Inputs',
    { retryable: false },
  )
}

function plannedFor(context: EngineContext, stateVersion: number | string): PlannedFor {
  return { stateVersion, configDigest: jsonDigest(context.variables) }
}

function toResult(context: EngineContext, stored: StoredPlan, planned: PlannedFor): Omit<PlanResult, 'summary'> {
  const { intent, counts, hasChanges } = stored
  return { intent, ...counts, hasChanges, digest: planDigest(context, stored, planned) }
}

const isUnexplained = ({ signal }: EngineContext, { errors }: CliResult, { diagnostics }: ObservedEvents): boolean =>
  !signal.aborted && diagnostics.length === 0 && errors.every(line => line.startsWith('warning:'))

/** CLI 3.260 exits with 1, and prints nothing, when outputs of the stack or of a component are not those of the plan. */
const outputsDiffer = () =>
  new EngineError(
    'PlanOutdated',
    'the outputs of the program are not those of the approved plan, for which "pulumi up --plan" fails without a reason; plan again, and return no output that differs in each execution, such as a time',
    { retryable: true },
  )

/** Of an operation without a plan of the CLI, from the events of its preview. */
function previewOf(events: ObservedEvents): ParsedPlan {
  if (!events.summary) {
    throw new EngineError('PlanFailed', 'the CLI reported success, but not what would change', { retryable: true })
  }
  if (events.isTruncated) {
    const message = 'the preview changes more resources than a Run can show (16 MiB of names and properties); use --target to change a part'
    throw new EngineError('PlanFailed', message, { retryable: false })
  }
  const changes = events.changes()
  const counts = { add: 0, change: 0, destroy: 0 }
  for (const { urn, actions } of changes) if (isCounted(urn)) addSteps(counts, actions)
  return { counts, changes, hasChanges: changes.length > 0 }
}

/** Moves the plan of the CLI to where a sandboxed program cannot change it any more. */
async function movePlanFile({ files }: EngineContext, written: string): Promise<string> {
  const text = await files.readText(written, { maxBytes: maxPlanBytes })
  if (text === undefined) throw new EngineError('PlanFailed', 'the CLI reported success, but wrote no plan', { retryable: true })
  await files.remove(written)
  return text
}

/** The CLI's own diff: what follows its heading. */
const diffText = ({ lines }: CliResult): string => lines.join('\n').trim()

const toDocument = ({ urn, type, actions, document }: ParsedPlan['changes'][number]) => ({
  ...{ urn, type, actions: [...actions], difference: document },
})
