import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { AnsibleOptions } from '../../../api/index.ts'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { formatBytes } from '../../../kubernetes/util/index.ts'
import { installDependencies } from '../../dependencies/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, Output, PlanOptions, PlanResult, WarmContext } from '../engine.ts'
import { EngineError, interruptedError } from '../engine-error.ts'
import { maxPlanBytes } from '../file-limits.ts'
import { jsonDigest } from '../json-digest.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import { ansibleProgram } from './ansible-program.ts'
import { formatFailures, formatRecap, formatTask, formatTasks, ObservedTasks, type TaskOnHost } from './observed-tasks.ts'
import { readOutputsFile } from './read-outputs.ts'
import { commandEnv, outputsPath, writeRunFiles } from './run-files.ts'

type Step = 'plan' | 'apply' | 'destroy'

/** What a plan prints is its diff. The store keeps less of it. */
const maxPrintedChars = 16 * 1024 * 1024
/** Of the tasks that a record names. */
const maxRecordedTasks = 1_000
const failureReasons = { plan: 'PlanFailed', apply: 'ApplyFailed', destroy: 'DestroyFailed' } as const

/** Stored between Runs: what the last Apply was for, what it returned, and which tasks changed something. */
type AnsibleRecord = {
  readonly engine: 'ansible'
  readonly inputsDigest: string
  readonly outputs: Record<string, Output>
  readonly hosts: number
  readonly changed: TaskOnHost[]
}

/** What is stored of a plan for its approval. */
type StoredPlan = {
  readonly engine: 'ansible'
  readonly intent: PlanResult['intent']
  readonly counts: Pick<PlanResult, 'add' | 'change' | 'destroy'>
  readonly hasChanges: boolean
}

/** Of a Run that has been prepared. */
type Session = { readonly program: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }

type CommandResult = { readonly tasks: ObservedTasks; readonly lines: readonly string[] }

/**
 * Ansible. A plan is `--check --diff`; Ansible cannot apply exactly a plan, so an approval covers its inputs only (`approvalBinding: Inputs`). Tasks that
 * check mode skips are not in a plan: therefore an Apply always runs the playbooks if these inputs have not been applied yet, and afterwards if check mode
 * finds changes. `env` is the environment of this process, in which the program is searched for; tests pass their own.
 */
export function createAnsibleEngine(env: Record<string, string | undefined> = process.env): Engine {
  return new AnsibleEngine(env)
}

class AnsibleEngine implements Engine {
  readonly name = 'ansible'
  readonly #program: ReturnType<typeof ansibleProgram>
  readonly #sessions = new WeakMap<EngineContext, Session>()

  constructor(env: Record<string, string | undefined>) {
    this.#program = ansibleProgram(env)
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#program.detect(env, options)
  }

  readonly warm = async (context: WarmContext): Promise<void> => {
    await installContent(context)
  }

  async prepare(context: EngineContext): Promise<void> {
    const { path, version } = await this.#program.find()
    if (!context.spec.ansible)
      throw new EngineError('InvalidSpec', 'spec.ansible.playbooks is required for engine ansible; set it to a playbook of the source', {
        retryable: false,
      })
    requirePathsInSource(context.spec.ansible)
    context.log(`ansible-core ${version}`)
    const content = await installContent(context)
    const plugin = `oarlock_${randomBytes(8).toString('hex')}`
    const args = await writeRunFiles(context, plugin)
    this.#sessions.set(context, { program: path, args, env: commandEnv(context, plugin, content) })
  }

  async plan(context: EngineContext, { destroy, refreshOnly }: PlanOptions = {}): Promise<PlanResult> {
    const intent = destroy ? 'destroy' : refreshOnly ? 'refresh' : 'apply'
    const options = context.spec.ansible!
    requireBinding(context, intent)
    const playbooks = playbooksOf(options, intent)
    const counts = { add: 0, change: 0, destroy: 0 }
    const store = async (hasChanges: boolean) => {
      const stored: StoredPlan = { engine: 'ansible', intent, counts, hasChanges }
      const file = join(context.private, `${intent}.plan.json`)
      await context.files.write(file, JSON.stringify(stored))
      return { ...toResult(context, stored), file, summary: [] }
    }
    if (playbooks.length === 0) {
      const text = 'spec.ansible.destroyPlaybook is not set: nothing will be done'
      return { ...(await store(true)), diff: { text, document: { intent, changes: [] } }, note: text }
    }
    const isChecked = options.check !== false
    const { tasks, lines } = await this.#run(context, 'plan', playbooks, isChecked ? ['--check', '--diff'] : ['--syntax-check'])
    const record = await readRecord(context)
    const isApplied = record?.inputsDigest === inputsDigest(context)
    counts[intent === 'destroy' ? 'destroy' : record === undefined ? 'add' : 'change'] = tasks.changeCount
    const hasChanges = intent === 'destroy' || tasks.changeCount > 0 || (intent === 'apply' && !(isApplied && isChecked))
    const result = await store(hasChanges)
    const notes = [formatRecap(tasks.hosts)]
    if (isApplied && intent === 'apply') notes.push(formatRepeated(tasks.changed, record.changed))
    if (intent === 'apply' && hasChanges && tasks.changeCount === 0 && isChecked)
      notes.push('check mode finds no changes, but skips some tasks, and these inputs have not been applied yet')
    if (!isChecked) notes.push('spec.ansible.check is false, so what would change is not known')
    const note = notes.filter(each => each !== '').join('; ')
    const document = { intent, changes: tasks.changed.map(each => ({ ...each })), hosts: Object.fromEntries(tasks.hosts) as Json }
    const diff = hasChanges ? { text: isChecked ? lines.join('\n') : note, document } : undefined
    return { ...result, ...(diff && { diff }), ...(note !== '' && { note }) }
  }

  /** Check mode may find something else by now; the digest covers what was approved, which are the inputs. */
  async readPlan(context: EngineContext, file: string): Promise<PlanResult> {
    const text = await context.files.readText(file, { maxBytes: maxPlanBytes })
    const plan: unknown = JSON.parse(text ?? 'null')
    if (!isJsonObject(plan) || plan.engine !== 'ansible')
      throw new EngineError('PlanOutdated', 'the stored plan is not one of engine ansible; plan again', { retryable: true })
    const stored = plan as StoredPlan
    requireBinding(context, stored.intent)
    return { ...toResult(context, stored), file, summary: [] }
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const options = context.spec.ansible!
    if (plan.intent === 'refresh' || !plan.hasChanges) {
      return { ...(await this.readOutputs(context)), changed: false, ...(plan.note !== undefined && { note: plan.note }) }
    }
    const playbooks = playbooksOf(options, plan.intent)
    if (playbooks.length === 0) {
      const note = 'spec.ansible.destroyPlaybook is not set, so nothing was done on the hosts'
      context.log(note)
      return { outputs: {}, resources: 0, changed: true, note }
    }
    await context.files.remove(outputsPath(context))
    const step = plan.intent === 'destroy' ? 'destroy' : 'apply'
    const { tasks } = await this.#run(context, step, playbooks, ['--diff'])
    const recap = formatRecap(tasks.hosts)
    if (step === 'destroy') return { outputs: {}, resources: 0, changed: true, note: recap }
    const outputs = await readOutputsFile(context)
    const changed = tasks.changed.slice(0, maxRecordedTasks)
    const record: AnsibleRecord = { engine: 'ansible', inputsDigest: inputsDigest(context), outputs, hosts: tasks.hosts.size, changed }
    await context.inventory.write(record)
    const note = [recap, await this.#checkAgain(context, playbooks)].filter(each => each !== '').join('; ')
    return { outputs, resources: tasks.hosts.size, changed: true, note }
  }

  async readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>> {
    const record = await readRecord(context)
    return { outputs: record?.outputs ?? {}, resources: record?.hosts ?? 0 }
  }

  /** With `checkAfterApply`. What was applied stays applied: a failure is reported in the log only. */
  async #checkAgain(context: EngineContext, playbooks: readonly string[]): Promise<string> {
    if (context.spec.ansible?.checkAfterApply !== true) return ''
    try {
      const { tasks } = await this.#run(context, 'plan', playbooks, ['--check', '--diff'])
      if (tasks.changeCount === 0) return 'a check after the apply finds no changes'
      return `not idempotent, because a check right after the apply finds changes: ${formatTasks(tasks.changed)}`
    } catch (error) {
      if (context.signal.aborted || !(error instanceof EngineError)) throw error
      context.log(`the check after the apply failed: ${error.message}`)
      return 'the check after the apply failed'
    }
  }

  /** @throws {EngineError} of the step, InvalidConfiguration, Interrupted */
  async #run(context: EngineContext, step: Step, playbooks: readonly string[], more: readonly string[]): Promise<CommandResult> {
    const session = this.#sessions.get(context)
    if (!session) throw new TypeError('the Run was not prepared')
    const mark = `::oarlock-ansible ${randomUUID()} `
    const tasks = new ObservedTasks()
    const lines: string[] = []
    const errors: string[] = []
    const flood = new AbortController()
    let chars = 0
    const { exitCode } = await context.run({
      ...{ command: session.program, args: [...session.args, ...more, '--', ...playbooks], cwd: context.directory },
      env: {
        ...session.env,
        OARLOCK_ANSIBLE_MARK: mark,
        ...(step === 'apply' && !more.includes('--check') && { OARLOCK_ANSIBLE_OUTPUTS: outputsPath(context) }),
      },
      signal: AbortSignal.any([context.signal, flood.signal]),
      isForLogOnly: { stdout: bytes => step !== 'plan' && !bytes.includes('::oarlock-ansible'), stderr: () => false },
      onStdoutLine: line => {
        const at = line.indexOf(mark)
        const printed = at < 0 ? line : line.slice(0, at)
        if (at >= 0) {
          const progress = tasks.add(line.slice(at + mark.length))
          // In check mode nothing is changed, so nothing is unknown if the Run is lost.
          if (progress) context.progress(step === 'plan' ? { ...progress, running: undefined } : progress)
        }
        if (at >= 0 && printed === '') return
        context.log(printed)
        if (step !== 'plan') return
        chars += printed.length + 1
        if (chars > maxPrintedChars) flood.abort()
        else lines.push(printed)
      },
      onStderrLine: line => {
        // Warnings have several lines; an error begins with ERROR.
        if (/^(\[?ERROR\b|ERROR!)/.test(line) || errors.length > 0) errors.push(line.trim())
        if (errors.length > 20) errors.pop()
        context.log(line)
      },
    })
    if (context.signal.aborted) this.#failInterrupted(context, step, tasks)
    if (flood.signal.aborted) {
      const message = `the plan printed more than ${formatBytes(maxPrintedChars)}; set no_log or diff: false for tasks with large files`
      throw new EngineError('PlanFailed', message, { retryable: false })
    }
    if (exitCode !== 0) this.#fail(context, step, tasks, errors, exitCode)
    if (tasks.hosts.size === 0 && !more.includes('--syntax-check')) {
      const message =
        'no host of the inventory matches the hosts of the playbooks, so nothing was done; correct spec.ansible.inventory, spec.ansible.limit or "hosts" of the plays'
      throw new EngineError('InvalidConfiguration', message, { retryable: true })
    }
    return { tasks, lines }
  }

  #failInterrupted(context: EngineContext, step: Step, { running }: ObservedTasks): never {
    if (step !== 'plan' && running.length > 0) {
      context.pendingOperations(
        running.map(task => ({ type: 'running', urn: formatTask(task) })),
        { isOwn: true },
      )
    }
    throw interruptedError('ansible-playbook', step, step === 'plan' ? 'it has planned nothing' : 'earlier tasks stay applied')
  }

  #fail(context: EngineContext, step: Step, tasks: ObservedTasks, errors: readonly string[], exitCode: number | null): never {
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const failures = formatFailures(tasks)
    const printed = errors.filter(line => line !== '').join(' ')
    const what = step === 'plan' ? 'ansible-playbook --check' : 'ansible-playbook'
    const fallback = exitCode === null ? `${what} was killed by a signal` : `${what} failed with exit code ${exitCode}`
    const recap = formatRecap(tasks.hosts)
    const detail = failures || printed || fallback
    const message = maskSecrets(recap === '' ? detail : `${detail}; ${recap}`, secrets).slice(0, 3_000)
    // Before the first task: the playbook, the inventory or an option is wrong.
    const isConfiguration = failures === '' && !tasks.hasStarted && printed !== '' && exitCode !== null
    throw new EngineError(isConfiguration ? 'InvalidConfiguration' : failureReasons[step], message, { retryable: !isConfiguration })
  }
}

/** Collections and roles of the requirements file. @returns variables by which Ansible finds them. @throws {DependencyError} */
async function installContent(context: WarmContext): Promise<Readonly<Record<string, string>>> {
  const { requirements, installEnvironment = [] } = context.spec.ansible ?? {}
  const installed = await installDependencies(context, {
    ...{ directory: context.directory, manager: 'galaxy', installEnvironment },
    ...(requirements !== undefined && { requirements }),
  })
  return installed?.env ?? {}
}

const playbooksOf = ({ playbooks, destroyPlaybook }: AnsibleOptions, intent: PlanResult['intent']): readonly string[] =>
  intent !== 'destroy' ? playbooks : destroyPlaybook === undefined ? [] : [destroyPlaybook]

/** Where a Stack requires approval, what is applied must be what was approved; Ansible has no plan that it could apply. */
function requireBinding({ spec }: EngineContext, intent: PlanResult['intent']): void {
  if (spec.approval !== 'Manual' || spec.ansible?.approvalBinding === 'Inputs') return
  if (intent === 'destroy' && spec.ansible?.destroyPlaybook === undefined) return
  throw new EngineError(
    'ApprovalNotBound',
    'Ansible cannot bind an apply to what was approved: it has no plan that can be applied; allow that an approval covers the source, the settings, the inventory and the variables only with spec.ansible.approvalBinding: Inputs',
    { retryable: false },
  )
}

/** What an approval covers is in the source. @throws {EngineError} InvalidSpec */
function requirePathsInSource({ playbooks, destroyPlaybook, inventory, requirements }: AnsibleOptions): void {
  const paths = { playbooks, destroyPlaybook, 'inventory.path': inventory?.path, requirements }
  for (const [field, value] of Object.entries(paths)) {
    const outside = [value ?? []].flat().find(path => path.split('/').includes('..'))
    if (outside === undefined) continue
    throw new EngineError(
      'InvalidSpec',
      `spec.ansible.${field} has ${JSON.stringify(outside)}; "..", which could leave the source, is not allowed`,
      {
        retryable: false,
      },
    )
  }
}

/** Settings that change nothing about the result. */
const executionOptions: readonly (keyof AnsibleOptions)[] = [
  'forks',
  'verbosity',
  'check',
  'checkAfterApply',
  'callbacks',
  'approvalBinding',
  'installEnvironment',
  'hostKeyChecking',
  'knownHosts',
  'vaultPasswords',
  'privateKeySecretRef',
]

/** The environment of the Stack counts too: modules and lookups read it. That of the worker does not: workers differ. */
function inputsDigest({ spec, variables, sourceDigest, env, workerEnvNames }: EngineContext): string {
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !workerEnvNames.includes(name)))
  const options = Object.fromEntries(Object.entries(spec.ansible ?? {}).filter(([name]) => !executionOptions.includes(name as never)))
  return jsonDigest({ options, variables, env: own, source: sourceDigest })
}

function toResult(context: EngineContext, stored: StoredPlan): Omit<PlanResult, 'summary'> {
  const { intent, counts, hasChanges } = stored
  const digest = jsonDigest({ plan: stored, options: context.spec.ansible, inputs: inputsDigest(context) })
  return { intent, ...counts, hasChanges, digest }
}

async function readRecord(context: EngineContext): Promise<AnsibleRecord | undefined> {
  const value = await context.inventory.read()
  return isJsonObject(value) && value.engine === 'ansible' && isJsonObject(value.outputs) ? (value as unknown as AnsibleRecord) : undefined
}

/** Tasks that changed something in the last Apply of the same inputs, and would again. */
function formatRepeated(changed: readonly TaskOnHost[], before: readonly TaskOnHost[]): string {
  const known = new Set(before.map(formatTask))
  const repeated = changed.filter(each => known.has(formatTask(each)))
  if (repeated.length === 0) return ''
  return `these tasks changed something in the last Apply and would again, so they are not idempotent, or something else changes the same: ${formatTasks(repeated)}`
}
