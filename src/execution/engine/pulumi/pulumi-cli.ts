import { readdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Diagnostic, describeDiagnostics } from '../diagnostics.ts'
import type { Detection, WarmContext } from '../engine.ts'
import { EngineError, type EngineErrorReason, interruptedError } from '../engine-error.ts'
import { EngineProgram } from '../engine-program.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import { errorLine, explainCliError, isLoginNote } from './cli-errors.ts'

const title = 'Pulumi'
const howToInstall = 'install it from https://www.pulumi.com/docs/install/, or set PULUMI_BIN to the path of the binary'
/** Lines that are kept for an error message. */
const maxErrorLines = 50

/** Of the output of a command that is not logged; the rest is dropped. */
const maxPrintedBytes = 256 * 1024 * 1024
/** The CLI prints about a line for each value, and a state of 64 MiB has up to 2.9 million at the density of the recorded ones; each line takes memory also if it is empty. */
const maxPrintedLines = 4_000_000

/** How a command ended. `lines` are those of stdout, if they were not logged; `errors` the last of stderr, without warnings. */
export type CliResult = { binary: string; exitCode: number | null; lines: readonly string[]; errors: readonly string[] }

type Binary = { path: string; version: string }

export type CommandOptions = {
  readonly args: readonly string[]
  /** In addition to that of the Run. */
  readonly env: Readonly<Record<string, string>>
  /** What it prints is not logged. */
  readonly isQuiet?: boolean
  /** The command that starts it with these arguments. Default: the CLI itself. */
  readonly wrap?: ((program: string, args: readonly string[]) => { command: string; args: string[] }) | undefined
  /** Names of variables of the Run that it does not get. */
  readonly withheld?: readonly string[]
  /** Called with the pid of the command, which starts when this has resolved; if it rejects the command does not start, and `run` rejects. */
  readonly beforeStart?: ((pid: number) => Promise<void>) | undefined
}

type StartOptions = Required<Pick<CommandOptions, 'env' | 'isQuiet' | 'withheld'>> & { binary: string }

/** $1 is the file for which it waits, then the program with its arguments, which replaces the shell and keeps its pid. */
const waitScript = `echo "pid $$"
until [ -e "$1" ]; do sleep 0.05; done
shift
exec "$@"`

/** Finds the Pulumi CLI and runs it. `env` is the environment in which the binary is searched for. */
export class PulumiCli {
  /** Of the worker. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly #program: EngineProgram<{ version: string }>

  constructor(env: Record<string, string | undefined>) {
    this.env = env
    const version = { versionArgs: ['version'], versionEnv: { PULUMI_SKIP_UPDATE_CHECK: 'true', HOME: '/nonexistent' } }
    this.#program = new EngineProgram(
      { ...{ title, name: 'pulumi', override: 'PULUMI_BIN', howToInstall, ...version }, read: readVersion },
      env,
    )
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#program.detect(env, options)
  }

  /** The binary to use. @throws {EngineError} EngineNotFound, with the places that were searched. */
  async find(): Promise<Binary> {
    return await this.#program.find()
  }

  /** Language hosts and plugins next to the binary, which the CLI starts. */
  async companions(): Promise<string[]> {
    const directory = dirname(await realpath((await this.find()).path))
    const names = (await readdir(directory)).filter(name => name.startsWith('pulumi-'))
    return names.map(name => join(directory, name))
  }

  /** Runs a command in the directory of the program. Its output goes to the log unless `isQuiet`. */
  async run(context: WarmContext, { args, env, isQuiet = false, withheld = [], wrap, beforeStart }: CommandOptions): Promise<CliResult> {
    const { path } = await this.find()
    const options = { binary: path, env, isQuiet, withheld }
    if (beforeStart) return await this.#runAfter(context, beforeStart, args, options)
    return await this.#run(context, wrap?.(path, args) ?? { command: path, args: [...args] }, options)
  }

  async #runAfter(
    context: WarmContext,
    beforeStart: (pid: number) => Promise<void>,
    args: readonly string[],
    options: StartOptions,
  ): Promise<CliResult> {
    const startFile = join(context.inputs, 'start')
    await context.files.remove(startFile)
    const stop = new AbortController()
    let failure: { error: unknown } | undefined
    const onPid = (pid: number) => {
      beforeStart(pid)
        .then(() => context.files.write(startFile, ''))
        .catch(error => {
          failure = { error }
          stop.abort()
        })
    }
    const command = { command: '/bin/sh', args: ['-c', waitScript, 'oarlock-pulumi', startFile, options.binary, ...args] }
    const result = await this.#run(context, command, { ...options, onPid, signal: AbortSignal.any([context.signal, stop.signal]) })
    if (failure) throw failure.error
    return result
  }

  async #run(
    context: WarmContext,
    command: { command: string; args: string[] },
    {
      binary,
      env,
      isQuiet,
      withheld,
      onPid,
      signal = context.signal,
    }: StartOptions & { onPid?: (pid: number) => void; signal?: AbortSignal },
  ): Promise<CliResult> {
    let waitsForPid = onPid !== undefined
    const own = Object.fromEntries(Object.entries(context.env).filter(([name]) => !withheld.includes(name)))
    const printed = new PrintedLines(maxPrintedBytes, maxPrintedLines)
    let hasPluginNote = false
    const log = (line: string) => {
      // The display repeats it with each line of the resource.
      if (/warning: using pulumi-\S+ from \$PATH at /.test(line)) {
        if (hasPluginNote) return
        hasPluginNote = true
      }
      context.log(line)
    }
    const errors: string[] = []
    const { exitCode } = await context.run({
      ...command,
      ...{ cwd: context.directory, env: { ...own, ...env }, signal },
      isForLogOnly: { stdout: () => !isQuiet && !waitsForPid, stderr: () => !isQuiet },
      // A document of the CLI may be one line.
      ...(isQuiet && { maxLineBytes: maxPrintedBytes }),
      onStdoutLine: line => {
        if (waitsForPid) {
          waitsForPid = false
          return onPid?.(Number(line.slice('pid '.length)))
        }
        if (!isQuiet) return log(line)
        printed.add(line)
      },
      onStderrLine: line => {
        const error = errorLine(line)
        if (error !== undefined) errors.push(error)
        if (errors.length > maxErrorLines) errors.shift()
        if (!isQuiet && !isLoginNote(line)) context.log(line)
      },
    })
    return { binary, exitCode, lines: printed.lines, errors }
  }

  /** @throws {EngineError} always: `reason`, or a more precise one that follows from the diagnostics. */
  fail(context: WarmContext, reason: EngineErrorReason, during: string, result: CliResult, reported: readonly Diagnostic[] = []): never {
    if (context.signal.aborted) {
      const isPreview = reason !== 'ApplyFailed' && reason !== 'DestroyFailed'
      throw interruptedError(title, during, isPreview ? 'no resource was changed' : 'the state has everything that it finished')
    }
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const mask = (text: string) => maskSecrets(text, secrets)
    const diagnostics = reported.map(each => ({
      ...{ ...each, summary: mask(each.summary) },
      ...(each.detail !== undefined && { detail: mask(each.detail) }),
    }))
    const printed = mask(result.errors.join(' '))
    const fallback = `"pulumi ${during}" failed with exit code ${result.exitCode}${printed && `: ${printed}`}`
    const message = describeDiagnostics(diagnostics, fallback)
    const explained = explainCliError(diagnostics.length > 0 ? message : printed, result.binary)
    if (explained) throw new EngineError(explained.reason, explained.message, { retryable: explained.isRetryable, diagnostics })
    if (/violates plan|plan file was generated|is not part of the plan|expected resource operations for/i.test(message)) {
      const detail = `the plan is outdated, the update would do something else: ${message}; plan again`
      throw new EngineError('PlanOutdated', detail, { retryable: true, diagnostics })
    }
    const isConfiguration =
      reason === 'InvalidConfiguration' || (isConfigurationError(message) && (reason === 'PlanFailed' || reason === 'InitFailed'))
    throw new EngineError(isConfiguration ? 'InvalidConfiguration' : reason, message, { retryable: !isConfiguration, diagnostics })
  }
}

/** What a quiet command prints, up to a limit: further lines are dropped (invariant 10). */
export class PrintedLines {
  readonly lines: string[] = []
  readonly #maxBytes: number
  readonly #maxLines: number
  #bytes = 0

  constructor(maxBytes: number, maxLines: number) {
    this.#maxBytes = maxBytes
    this.#maxLines = maxLines
  }

  add(line: string): void {
    this.#bytes += Buffer.byteLength(line) + 1
    if (this.#bytes <= this.#maxBytes && this.lines.length < this.#maxLines) this.lines.push(line)
  }
}

/** The same inputs will fail in the same way: a value is missing or has the wrong type. */
const isConfigurationError = (message: string): boolean =>
  /missing required configuration|cannot be parsed|could not unmarshal|validating stack config/i.test(message)

function readVersion(output: string): { version: string } {
  const version = /^v?(\d+\.\d+\.\d+\S*)/.exec(output.trim())?.[1]
  if (version === undefined) throw new Error(`its output is no version: ${JSON.stringify(output.slice(0, 100))}`)
  return { version }
}
