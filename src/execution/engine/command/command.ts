import { delimiter, join } from 'node:path'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { formatBytes, UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { installDependencies } from '../../dependencies/index.ts'
import { SpawnError } from '../../workspace/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, Output, PlanDiff, PlanOptions, PlanResult } from '../engine.ts'
import { EngineError, type EngineErrorReason, interruptedError } from '../engine-error.ts'
import { maxStateBytes } from '../file-limits.ts'
import { jsonDigest } from '../json-digest.ts'
import { maxOutputsBytes } from '../output-marks.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import { invalidOutputs, parseOutputs } from './parse-outputs.ts'
import { parseProgressLine } from './parse-progress-line.ts'

type Step = 'plan' | 'apply' | 'destroy'

/** Linux limits one environment variable to 128 KiB; longer ones are only in OARLOCK_VARIABLES. */
const maxVariableBytes = 100_000

/** What a plan prints is kept for its digest. The store keeps less of it. */
const maxPrintedChars = 16 * 1024 * 1024

/** Stored between Runs: the outputs of the last apply, for Runs that find nothing to change. */
type CommandRecord = { engine: 'command'; outputs: Record<string, { value: Json; sensitive: boolean }> }

/**
 * Runs the user's own commands. Their inputs are in the environment: `OARLOCK_VAR_<name>` (a string unchanged, any other value as JSON),
 * `OARLOCK_VARIABLES` (path of a JSON file with all variables), `OARLOCK_STACK`, `OARLOCK_NAMESPACE`, `OARLOCK_RUN`, `OARLOCK_EPOCH` and
 * `OARLOCK_RUN_TYPE` (plan, apply or destroy). They write outputs to the file `OARLOCK_OUTPUTS`, and may store a JSON state in the file
 * `OARLOCK_STATE` (Managed state only). A line `::progress 3/12 text` on stdout reports progress.
 *
 * `plan` exits with 0 when nothing would change and with 2 when something would. Without `plan` a Run always applies. The digest of a plan
 * covers the command, the source, the variables, the state and everything that the plan printed, so a plan that needs approval must print
 * the same text as long as it would make the same changes.
 */
export function createCommandEngine(): Engine {
  return new CommandEngine()
}

const interruptedResult: Readonly<Record<Step, string>> = {
  plan: 'it has planned nothing',
  apply: 'only the command itself knows what it has changed',
  destroy: 'only the command itself knows what it has deleted',
}

class CommandEngine implements Engine {
  readonly name = 'command'
  /** Of each Run that has been prepared: variables by which its programs find their packages. */
  readonly #packageEnv = new WeakMap<EngineContext, Readonly<Record<string, string>>>()

  async detect(): Promise<Detection> {
    return { found: true, version: 'built in', path: '' }
  }

  async prepare(context: EngineContext): Promise<void> {
    if (!context.spec.command?.apply) {
      throw new EngineError('InvalidSpec', 'spec.command.apply is required for engine command; set it to a program and its arguments', {
        retryable: false,
      })
    }
    await context.files.write(variablesPath(context), `${JSON.stringify(context.variables, null, 2)}\n`)
    if (context.spec.command.installDependencies) this.#packageEnv.set(context, await installPackages(context))
  }

  async plan(context: EngineContext, options: PlanOptions = {}): Promise<PlanResult> {
    const intent = options.destroy ? 'destroy' : options.refreshOnly ? 'refresh' : 'apply'
    // Read before the plan runs, because the plan may write files.
    const [record, state] = await Promise.all([readRecord(context), stateText(context)])
    const inputs = { intent, command: context.spec.command, variables: context.variables, source: context.sourceDigest, state }
    const count = { add: 0, change: 0, destroy: 0 }
    const printed: string[] = []
    let hasChanges = intent !== 'refresh'
    if (intent === 'destroy') {
      count.destroy = 1
    } else if (context.spec.command?.plan) {
      const errors: string[] = []
      const flood = new AbortController()
      let chars = 0
      const keep = (line: string) => {
        chars += line.length + 1
        if (chars > maxPrintedChars) flood.abort()
        else printed.push(line)
      }
      const exitCode = await this.#run(context, 'plan', keep, errors, flood.signal)
      if (flood.signal.aborted)
        throw new EngineError(
          'PlanFailed',
          `spec.command.plan printed more than ${formatBytes(maxPrintedChars)}; print a summary of the changes`,
          { retryable: false },
        )
      if (exitCode !== 0 && exitCode !== 2) this.#fail(context, 'plan', exitCode, errors.length > 0 ? errors : printed)
      hasChanges = exitCode === 2
    }
    if (hasChanges && intent === 'apply') count[record === undefined ? 'add' : 'change'] = 1
    const digest = jsonDigest({ ...inputs, hasChanges, printed })
    const file = join(context.private, `${intent}.plan.json`)
    await context.files.write(file, `${JSON.stringify({ engine: 'command', digest })}\n`)
    const diff = hasChanges ? commandDiff(context, intent, printed) : undefined
    // The log has what the command printed already.
    return { intent, digest, ...count, hasChanges, file, summary: [], ...(diff && { diff }) }
  }

  /** A command cannot apply a stored plan, so it plans again: the digests are equal if it would make the same changes. */
  async readPlan(context: EngineContext, _file: string, options?: PlanOptions): Promise<PlanResult> {
    return await this.plan(context, options)
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const { command } = context.spec
    if (plan.intent === 'destroy') {
      if (command?.destroy) {
        const errors: string[] = []
        const exitCode = await this.#run(context, 'destroy', undefined, errors)
        if (exitCode !== 0) this.#fail(context, 'destroy', exitCode, errors)
      } else context.log('spec.command.destroy is not set, so nothing was done')
      return { outputs: {}, resources: 0, changed: true }
    }
    if (!plan.hasChanges || plan.intent === 'refresh') return { ...(await this.readOutputs(context)), changed: false }
    await context.files.remove(outputsPath(context))
    const errors: string[] = []
    const exitCode = await this.#run(context, 'apply', undefined, errors)
    if (exitCode !== 0) this.#fail(context, 'apply', exitCode, errors)
    const outputs = await readOutputsFile(context)
    const next: CommandRecord = { engine: 'command', outputs }
    await context.inventory.write(next)
    return { outputs, resources: 1, changed: true }
  }

  async readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>> {
    const record = await readRecord(context)
    return { outputs: record?.outputs ?? {}, resources: record === undefined ? 0 : 1 }
  }

  async #run(
    context: EngineContext,
    step: Step,
    onLine?: (line: string) => void,
    errors: string[] = [],
    stop?: AbortSignal,
  ): Promise<number | null> {
    const [command = '', ...args] = context.spec.command?.[step] ?? []
    try {
      const { exitCode } = await context.run({
        command,
        args,
        cwd: context.directory,
        env: { ...commandEnv(context, step), ...this.#packageEnv.get(context) },
        signal: stop ? AbortSignal.any([context.signal, stop]) : context.signal,
        isForLogOnly: { stdout: bytes => (!onLine || stop?.aborted === true) && !bytes.includes('::progress'), stderr: () => true },
        onStdoutLine: line => {
          const progress = parseProgressLine(line)
          if (progress) return context.progress(progress)
          onLine?.(line)
          context.log(line)
        },
        onStderrLine: line => {
          if (line.trim() !== '') errors.push(line.trim())
          if (errors.length > 5) errors.shift()
          context.log(line)
        },
      })
      return exitCode
    } catch (error) {
      if (!(error instanceof SpawnError)) throw error
      const hint = error.reason === 'CommandNotExecutable' ? ', or name its interpreter, as in ["sh", "apply.sh"]' : ''
      const reason = error.reason === 'CommandNotFound' ? 'EngineNotFound' : 'InvalidSpec'
      throw new EngineError(reason, `spec.command.${step}: ${error.message}${hint}`, { retryable: false, cause: error })
    }
  }

  #fail(context: EngineContext, step: Step, exitCode: number | null, errors: readonly string[]): never {
    if (context.signal.aborted) throw interruptedError(`spec.command.${step}`, step, interruptedResult[step])
    const reasons: Record<Step, EngineErrorReason> = { plan: 'PlanFailed', apply: 'ApplyFailed', destroy: 'DestroyFailed' }
    const last = errors.at(-1)
    const outcome = exitCode === null ? 'was killed by a signal' : `failed with exit code ${exitCode}`
    const allowed = step === 'plan' ? ' (0: no changes, 2: changes)' : ''
    // Masked before it is truncated: part of a secret would not be recognized.
    const output =
      last === undefined ? '' : `: ${maskSecrets(last, secretValues(context.variables, context.sensitiveNames)).slice(0, 1_000)}`
    throw new EngineError(reasons[step], `spec.command.${step} ${outcome}${allowed}${output}`, { retryable: true })
  }
}

/** @throws {DependencyError} {EngineError} InvalidSpec if the source has no project. */
async function installPackages(context: EngineContext): Promise<Record<string, string>> {
  const { directory, spec, env } = context
  const installed = await installDependencies(context, { directory, installEnvironment: spec.command?.installEnvironment ?? [] })
  if (!installed) {
    throw new EngineError(
      'InvalidSpec',
      'spec.command.installDependencies is set, but the directory of the source has no project: it needs a package.json, requirements.txt, pyproject.toml or go.mod; add one, or remove the field',
      { retryable: false },
    )
  }
  // Programs that the packages bring are found by name.
  const binaries = [join(directory, 'node_modules', '.bin'), join(directory, '.venv', 'bin')]
  return { ...installed.env, PATH: [...binaries, env.PATH ?? process.env.PATH ?? ''].join(delimiter) }
}

/** What the command printed, or which command will run where none plans. */
function commandDiff({ spec }: EngineContext, intent: PlanResult['intent'], printed: readonly string[]): PlanDiff {
  const command = intent === 'destroy' ? spec.command?.destroy : spec.command?.apply
  const isPlanned = intent !== 'destroy' && spec.command?.plan !== undefined
  const lines = isPlanned ? printed : [command ? `+ ${JSON.stringify(command)}` : 'no command is set: nothing will be done']
  return { text: lines.join('\n'), document: { intent, command: command ?? null, ...(isPlanned && { output: [...printed] }) } }
}

function commandEnv(context: EngineContext, step: Step): Record<string, string> {
  const { stack, statePath, spec } = context
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(context.variables)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    if (Buffer.byteLength(text) > maxVariableBytes || text.includes('\0')) continue
    variables[`OARLOCK_VAR_${name.replace(/[^A-Za-z0-9_]/g, '_')}`] = text
  }
  return {
    ...context.env,
    ...variables,
    OARLOCK_VARIABLES: variablesPath(context),
    OARLOCK_OUTPUTS: outputsPath(context),
    ...(spec.state !== 'External' && statePath !== undefined && { OARLOCK_STATE: statePath }),
    OARLOCK_STACK: stack.name,
    OARLOCK_NAMESPACE: stack.namespace,
    OARLOCK_RUN: context.runName,
    OARLOCK_EPOCH: String(context.epoch),
    OARLOCK_RUN_TYPE: step,
  }
}

function variablesPath({ inputs }: EngineContext): string {
  return join(inputs, 'variables.json')
}

function outputsPath({ scratch }: EngineContext): string {
  return join(scratch, 'outputs.json')
}

async function readOutputsFile(context: EngineContext): Promise<Record<string, Output>> {
  const path = outputsPath(context)
  try {
    return parseOutputs((await context.files.readText(path, { maxBytes: maxOutputsBytes })) ?? '')
  } catch (error) {
    if (error instanceof UnexpectedFileError) throw invalidOutputs(error.problem)
    throw error
  }
}

async function stateText({ statePath, spec, files }: EngineContext): Promise<string | undefined> {
  return spec.state === 'External' || statePath === undefined ? undefined : await files.readText(statePath, { maxBytes: maxStateBytes })
}

async function readRecord(context: EngineContext): Promise<CommandRecord | undefined> {
  const value = await context.inventory.read()
  return isJsonObject(value) && value.engine === 'command' && isJsonObject(value.outputs) ? (value as CommandRecord) : undefined
}
