import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Deployment, interruptedOperations } from '../../../../stores/pulumi/index.ts'
import { readStartTime } from '../../../workspace/index.ts'
import type { EngineContext } from '../../engine.ts'
import { EngineError } from '../../engine-error.ts'
import { jsonDigest } from '../../json-digest.ts'
import { maskSecrets, secretValues } from '../../secret-values.ts'
import { formatPending, pendingCreates } from '../pending-creates.ts'
import type { PulumiProject } from '../project-file.ts'
import type { CliResult, PulumiCli } from '../pulumi-cli.ts'
import { deploymentOf } from '../results.ts'
import type { Session, StackState } from '../session.ts'
import { writeStackConfig } from '../stack-config.ts'
import {
  abandonedBy,
  formatLock,
  type LockFacts,
  parseNewestUpdate,
  parseRecorded,
  type RecordedCommand,
  serializeRecorded,
  updateAbandonedBy,
  updateAgent,
} from './abandoned-lock.ts'
import { type LockConflict, parseLockConflict } from './backend-lock.ts'
import { EventLog } from './event-log.ts'

export type ExternalOptions = {
  readonly context: EngineContext
  readonly cli: PulumiCli
  readonly project: PulumiProject
  /** Of the stack. */
  readonly name: string
  readonly env: Readonly<Record<string, string>>
}

/** Between two reads of the events, for the progress. */
const eventIntervalMs = 1_000
/** After it has removed a lock, a command may find another one. */
const maxRemovedLocks = 3
/** USER_HZ: ticks of `readStartTime` per second, on every machine on which Linux runs Node. */
const ticksPerSecond = 100

/** Commands that have events, and of which all but `preview` and `--preview-only` take the lock. */
const operations: readonly string[] = ['preview', 'up', 'destroy', 'refresh']

/**
 * The user's own backend, as the environment or the project file names it. It is used unchanged, except that the lock that an ended Run of the Stack
 * has left is removed (invariant 4).
 * @throws {EngineError} InitFailed, PendingCreates
 */
export async function openExternalSession(options: ExternalOptions): Promise<Session> {
  const { context, cli, project, name } = options
  const configFile = await writeStackConfig(context, { project, stack: name, encrypt: undefined })
  // Without it, an update of a stack without a configuration file in the source would use a new key of the passphrase each time.
  const env = { ...options.env, PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: 'true', PULUMI_DEBUG_COMMANDS: 'true' }
  const commands = new ExternalCommands({ ...options, env })
  const run: Session['run'] = (args, { isQuiet } = {}) =>
    operations.includes(args[0] ?? '')
      ? commands.operate(args, isQuiet === true, events => session.onEvents(events))
      : cli.run(context, { args, env, isQuiet: isQuiet === true })
  const select = ['stack', 'select', '--non-interactive', '--color', 'never', `--stack=${name}`]
  if ((await run(select, { isQuiet: true })).exitCode !== 0) {
    // Creating takes the lock too.
    const created = await commands.lock([...select, '--create'])
    if (created.exitCode !== 0) cli.fail(context, 'InitFailed', 'stack select', created)
  }
  const session: Session = {
    ...{ project, reference: `${project.name}/${name}`, stack: name, configFile, run, decrypt: undefined },
    clearPendingCreates: async () => [],
    importPendingCreates: async () => [],
    onEvents: () => {},
    readState: async (): Promise<StackState> => {
      const exported = await run(['stack', 'export', `--stack=${name}`], { isQuiet: true })
      if (exported.exitCode !== 0) cli.fail(context, 'PlanFailed', 'stack export', exported)
      const deployment = deploymentOf(Buffer.from(exported.lines.join('\n')))
      return { version: jsonDigest(deployment), deployment }
    },
  }
  rejectInterrupted(context, (await session.readState()).deployment)
  return session
}

/** Creations that were interrupted may exist at the provider: the CLI would only warn, and create them again. @throws {EngineError} PendingCreates */
export function rejectInterrupted(context: Pick<EngineContext, 'spec' | 'pendingOperations'>, deployment: Deployment): void {
  const { spec } = context
  const urns = pendingCreates(deployment).map(({ urn }) => urn)
  if (urns.length === 0 || spec.pulumi?.pendingCreates === 'Clear') return
  const operations = interruptedOperations(deployment).map(({ type, resource }) => ({ type, urn: resource.urn }))
  context.pendingOperations(operations, { isOwn: false })
  throw new EngineError(
    'PendingCreates',
    `in the state of the backend the creation of resources is interrupted, and it is unknown whether the provider finished: ${formatPending(urns)}; delete what exists and set spec.pulumi.pendingCreates to Clear, which creates them again; or clear them with "pulumi refresh --clear-pending-creates" on that backend and add what exists with "pulumi import"`,
    { retryable: false },
  )
}

class ExternalCommands {
  readonly #options: ExternalOptions
  readonly #facts: Pick<LockFacts, 'stackUid' | 'epoch'>
  /** Of earlier Runs and of this one; read once. */
  #recorded: Promise<RecordedCommand[]> | undefined

  constructor(options: ExternalOptions) {
    this.#options = options
    const { stack, epoch } = options.context
    this.#facts = { stackUid: stack.uid, epoch }
  }

  /** Runs a command with events. @throws {EngineError} StateLocked while someone else has the lock. */
  async operate(args: readonly string[], isQuiet: boolean, onEvents: Session['onEvents']): Promise<CliResult> {
    const { context } = this.#options
    const { stackUid, epoch } = this.#facts
    const path = join(context.scratch, 'events.json')
    const [command = '', ...rest] = args
    const withEvents = [command, `--event-log=${path}`, `--exec-agent=${updateAgent(stackUid, epoch)}`, ...rest]
    const locks = command !== 'preview' && !args.includes('--preview-only')
    const start = async () => {
      await context.files.remove(path)
      const ended = new AbortController()
      const following = follow(new EventLog(context.files, path, message => context.log(message)), onEvents, ended.signal)
      return await this.#run(withEvents, locks, isQuiet).finally(() => {
        ended.abort()
        return following
      })
    }
    return await this.#retryLocked(start)
  }

  /** Runs a command that takes the lock. @throws {EngineError} StateLocked while someone else has it. */
  async lock(args: readonly string[]): Promise<CliResult> {
    return await this.#retryLocked(() => this.#run(args, true, false))
  }

  async #retryLocked(start: () => Promise<CliResult>): Promise<CliResult> {
    for (let removed = 0; ; removed++) {
      const result = await start()
      const conflict = result.exitCode === 0 ? undefined : parseLockConflict(result.errors)
      if (!conflict) return result
      if (removed === maxRemovedLocks) throw lockedError('it is locked again and again')
      await this.#removeAbandoned(conflict)
    }
  }

  async #run(args: readonly string[], locks: boolean, isQuiet: boolean): Promise<CliResult> {
    const { context, cli, env } = this.#options
    // The host name of a sandbox identifies the Run.
    const isRecorded = locks && context.mayWrite && context.spec.isolation?.level !== 'Sandbox'
    return await cli.run(context, { args, env, isQuiet, ...(isRecorded && { beforeStart: pid => this.#record(pid) }) })
  }

  /** Stores who is about to lock, before it can: whatever is killed then, the next Run finds it. */
  async #record(pid: number): Promise<void> {
    const { context } = this.#options
    const { runName, epoch } = context
    const command: RecordedCommand = { runName, epoch, host: hostname(), pid, startedAtMs: Date.now() }
    const commands = [...(await this.#readRecorded()), command]
    this.#recorded = Promise.resolve(commands)
    await context.inventory.write(serializeRecorded(commands))
  }

  #readRecorded(): Promise<RecordedCommand[]> {
    this.#recorded ??= this.#options.context.inventory.read().then(parseRecorded)
    return this.#recorded
  }

  /**
   * `pulumi cancel` removes whichever lock is there. As long as that of the ended Run is, no other client gets one; if someone else removes it
   * after the check and a client locks the stack before this command, the lock of that client is removed (docs/pulumi.md, Locks).
   * @throws {EngineError} StateLocked
   */
  async #removeAbandoned(conflict: LockConflict): Promise<void> {
    const { context, cli, env, name } = this.#options
    const holders = conflict.kind === 'locks' ? await this.#holdersOf(conflict.locks) : [await this.#holderOfUpdate(conflict.message)]
    const args = ['cancel', '--yes', '--non-interactive', '--color', 'never', `--stack=${name}`]
    const canceled = await cli.run(context, { args, env, isQuiet: true })
    if (canceled.exitCode !== 0) cli.fail(context, 'ApplyFailed', 'cancel', canceled)
    context.log(`removed the lock of the backend that ${holders.join(' and ')} has left, which has ended`)
  }

  async #holdersOf(locks: (LockConflict & { kind: 'locks' })['locks']): Promise<string[]> {
    if (!locks || locks.length === 0) throw lockedError('the CLI did not report by whom')
    const { context } = this.#options
    const facts = { ...this.#facts, recorded: await this.#readRecorded(), startOf }
    // A Run that only plans may be executed while another one writes.
    const holders = locks.map(lock => ({ lock, run: context.mayWrite ? abandonedBy(lock, facts) : undefined }))
    const other = holders.find(({ run }) => run === undefined)
    if (other) throw lockedError(`it is locked by ${formatLock(other.lock)}, in ${other.lock.url}`)
    return holders.flatMap(({ run }) => run ?? [])
  }

  async #holderOfUpdate(message: string): Promise<string> {
    const { context, cli, env, name } = this.#options
    const args = ['stack', 'history', '--json', '--page=1', '--page-size=1', '--non-interactive', `--stack=${name}`]
    const history = await cli.run(context, { args, env, isQuiet: true })
    const newest = history.exitCode === 0 ? parseNewestUpdate(history.lines.join('\n')) : undefined
    const run = newest && context.mayWrite ? updateAbandonedBy(newest, this.#facts) : undefined
    if (run !== undefined) return run
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const { kind, version, startedAt, agent } = newest ?? {}
    const by = agent === undefined ? '' : ` by ${JSON.stringify(agent)}`
    const what = newest?.isRunning ? `${kind} ${version}${by} is in progress since ${startedAt}` : message
    throw lockedError(maskSecrets(what, secrets))
  }
}

/** Such a Run has done nothing; the Stack tries again. */
const lockedError = (what: string) =>
  new EngineError(
    'StateLocked',
    `the stack is locked in its backend: ${what}; it is not a lock that an ended Run of this Stack has left, so it stays: wait for its holder, or run "pulumi cancel" if the holder has ended`,
    { retryable: true },
  )

/** Reads the log until it ends. What cannot be read is not shown: a preview without a summary fails. */
async function follow(log: EventLog, onEvents: Session['onEvents'], ended: AbortSignal): Promise<void> {
  const pass = async () => {
    const events = await log.read().catch(() => [])
    if (events.length > 0) onEvents(events)
  }
  while (!ended.aborted) {
    await delay(eventIntervalMs, undefined, { signal: ended }).catch(() => {})
    const startedAt = performance.now()
    await pass()
    if (!ended.aborted) await delay(20 * (performance.now() - startedAt), undefined, { signal: ended }).catch(() => {})
  }
  await pass()
}

function startOf(host: string, pid: number): number | undefined {
  if (host !== hostname()) return undefined
  const ticks = readStartTime(pid)
  return ticks === undefined ? undefined : Date.now() - uptime() * 1_000 + (Number(ticks) / ticksPerSecond) * 1_000
}
