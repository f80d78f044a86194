import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { type Diagnostic, describeDiagnostics } from '../diagnostics.ts'
import type { Detection, WarmContext } from '../engine.ts'
import { EngineError, type EngineErrorReason, interruptedError } from '../engine-error.ts'
import { EngineProgram } from '../engine-program.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import type { Flavor } from './flavor.ts'
import {
  isConfigurationError,
  isFollowUpError,
  isProvisionerOutput,
  type ResourceDiagnostic,
  readUiLine,
  type UiEvent,
} from './ui-stream.ts'

/** `show -json` and `state pull` print one line; the state store rejects a state long before it has this size. */
const maxDocumentBytes = 512 * 1024 * 1024
const maxUiLineBytes = 64 * 1024 * 1024
/** Lines of stderr that are kept for an error message. */
const maxErrorLines = 50
/**
 * Terraform rewrites a local state after every resource; OpenTofu (1.12.6, internal/backend/local) only every TF_STATE_PERSIST_INTERVAL
 * seconds, 20 by default, and panics below 20: when it is killed, up to 20 s of finished resources are lost. This number of seconds
 * overflows its int64 of nanoseconds to a time in the past, so every change is written. terraform.test.ts checks that on the real binary.
 */
const persistEveryChange = '9223372037'

/** How a command ended. */
export type CliResult = { exitCode: number | null; diagnostics: ResourceDiagnostic[]; errorText: string[] }

/** The variables file of a Run: its path, and the variable on each of its lines. */
export type VariablesFilePath = { path: string; variableOfLine(line: number): string | undefined }

type Binary = { path: string; version: string }

/** Finds the Terraform or OpenTofu binary, runs it, and converts its failures. */
export class TerraformCli {
  readonly #flavor: Flavor
  readonly #env: Record<string, string | undefined>
  readonly #program: EngineProgram<{ version: string; platform: string }>

  /** `env`: the environment in which the binary is searched for. */
  constructor(flavor: Flavor, env: Record<string, string | undefined>) {
    this.#flavor = flavor
    this.#env = env
    const { title, binary: name, override, howToInstall } = flavor
    const version = { versionArgs: ['version', '-json'], versionEnv: { CHECKPOINT_DISABLE: '1' } }
    this.#program = new EngineProgram({ ...{ title, name, override, howToInstall, ...version }, read: readVersion }, env)
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#program.detect(env, options)
  }

  /** What providers it needs, such as `linux_amd64`; known after {@link find}. */
  platformOf({ path }: Pick<Binary, 'path'>): string {
    return this.#program.infoOf(path)?.platform ?? ''
  }

  /** The binary to use. @throws {EngineError} EngineNotFound, with the places that were searched. */
  async find(): Promise<Binary> {
    return await this.#program.find()
  }

  /** Runs a command that prints the machine-readable UI. Its text goes to the log, its diagnostics are collected. */
  async stream(
    context: WarmContext,
    { path }: Binary,
    args: string[],
    variables?: VariablesFilePath,
    onEvent?: (event: UiEvent) => void,
  ): Promise<CliResult> {
    const diagnostics: ResourceDiagnostic[] = []
    const errorText: string[] = []
    const { exitCode } = await context.run({
      ...this.#command(context, path, args),
      maxLineBytes: maxUiLineBytes,
      isForLogOnly: { stdout: isProvisionerOutput, stderr: () => true },
      onStdoutLine: line => {
        const { event, log } = readUiLine(line, { variablesFile: variables?.path, variableOfLine: variables?.variableOfLine })
        if (event.kind === 'diagnostic') diagnostics.push(event)
        onEvent?.(event)
        // `apply` repeats the plan before it starts, and the log has that already.
        if (event.kind !== 'planned' || args[0] !== 'apply') log.forEach(line => void context.log(line))
      },
      onStderrLine: line => {
        if (errorText.length < maxErrorLines && line.trim() !== '') errorText.push(line.trim())
        context.log(line)
      },
    })
    return { exitCode, diagnostics, errorText }
  }

  /** Runs a command that prints one JSON document. @throws {EngineError} with `reason` */
  async capture(context: WarmContext, binary: Binary, args: string[], reason: EngineErrorReason): Promise<unknown> {
    return JSON.parse((await this.captureText(context, binary, args, reason)) || 'null')
  }

  /** Runs a command and returns what it prints. @throws {EngineError} with `reason` */
  async captureText(context: WarmContext, { path }: Binary, args: string[], reason: EngineErrorReason): Promise<string> {
    const lines: string[] = []
    const errors: string[] = []
    const { exitCode } = await context.run({
      ...this.#command(context, path, args),
      maxLineBytes: maxDocumentBytes,
      onStdoutLine: line => void lines.push(line),
      onStderrLine: line => {
        if (errors.length < maxErrorLines) errors.push(line)
      },
    })
    if (exitCode === 0) return lines.join('\n')
    for (const line of errors) context.log(line)
    this.fail(context, reason, args[0] ?? '', { exitCode, diagnostics: [], errorText: errors.map(line => line.trim()).filter(Boolean) })
  }

  /** @throws {EngineError} always: `reason`, or a more precise one that follows from the diagnostics. */
  fail(context: WarmContext, reason: EngineErrorReason, during: string, result: CliResult): never {
    const { title, binary } = this.#flavor
    const { exitCode, errorText } = result
    if (context.signal.aborted) {
      const isBeforeApply = during === 'init' || during === 'plan'
      throw interruptedError(title, during, isBeforeApply ? 'no resource was changed' : 'the state has everything that it finished')
    }
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const errors = result.diagnostics.filter(({ diagnostic }) => diagnostic.severity === 'error')
    const causes = errors.some(each => !isFollowUpError(each)) ? errors.filter(each => !isFollowUpError(each)) : errors
    const diagnostics = result.diagnostics.map(({ diagnostic }) => maskDiagnostic(diagnostic, secrets))
    const shown = causes.map(({ diagnostic }) => maskDiagnostic(diagnostic, secrets))
    const fallback = `"${binary} ${during}" failed with exit code ${exitCode}${errorText.length > 0 ? `: ${errorText.join(' ')}` : ''}`
    const message = describeDiagnostics(shown, maskSecrets(fallback, secrets))
    if (causes.some(({ diagnostic }) => /plan is stale|plan does not match/i.test(diagnostic.summary))) {
      throw new EngineError('PlanOutdated', `the plan is outdated: the state changed after the plan was made; plan again`, {
        retryable: true,
        diagnostics,
      })
    }
    const isConfiguration = (reason === 'PlanFailed' || reason === 'InitFailed') && causes.length > 0 && causes.every(isConfigurationError)
    throw new EngineError(isConfiguration ? 'InvalidConfiguration' : reason, message, { retryable: !isConfiguration, diagnostics })
  }

  #command(context: WarmContext, path: string, args: string[]) {
    return { command: path, args, cwd: context.directory, env: this.#commandEnv(context, path), signal: context.signal }
  }

  /** Settings of the worker's machine for Terraform (mirrors, registry credentials), then the Stack's variables, then ours. */
  #commandEnv(context: WarmContext, path: string): Record<string, string> {
    const user = Object.fromEntries(Object.entries(context.env).filter(([name]) => !/^TF_(LOG|LOG_.*|PLUGIN_CACHE_.*)$/.test(name)))
    const config = cliConfigurationOf(this.#env)
    return {
      ...(config !== undefined && { TF_CLI_CONFIG_FILE: config }),
      ...user,
      TF_IN_AUTOMATION: '1',
      TF_INPUT: '0',
      CHECKPOINT_DISABLE: '1',
      TF_PLUGIN_CACHE_DIR: runPluginDirectory(context),
      // Without it the cache is not used for a provider that the lock file does not have. The incomplete lock file that results is in the
      // Run's copy of the source, which is deleted.
      TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE: '1',
      ...(this.#needsPersistInterval(context, path) && { TF_STATE_PERSIST_INTERVAL: persistEveryChange }),
    }
  }

  /** Not for the user's own backend, where each write may be a slow request, nor for 32-bit builds, which cannot parse the number. */
  #needsPersistInterval({ spec }: WarmContext, path: string): boolean {
    return this.#flavor.name === 'opentofu' && spec.state !== 'External' && /_(amd64|arm64)$/.test(this.platformOf({ path }))
  }
}

/** The CLI configuration of a worker. Undefined if it does not exist: a missing file would be a warning in the log of every command. */
export function cliConfigurationOf({ TF_CLI_CONFIG_FILE: path }: Readonly<Record<string, string | undefined>>): string | undefined {
  return path !== undefined && existsSync(path) ? path : undefined
}

/** The plugin cache of one Run. */
export function runPluginDirectory({ scratch }: WarmContext): string {
  return join(scratch, 'plugins')
}

function maskDiagnostic(diagnostic: Diagnostic, secrets: readonly string[]): Diagnostic {
  const { summary, detail } = diagnostic
  return { ...diagnostic, summary: maskSecrets(summary, secrets), ...(detail !== undefined && { detail: maskSecrets(detail, secrets) }) }
}

function readVersion(text: string): { version: string; platform: string } {
  const output: unknown = JSON.parse(text)
  if (!isJsonObject(output) || typeof output.terraform_version !== 'string') throw new Error('its output has no terraform_version')
  return { version: output.terraform_version, platform: String(output.platform) }
}
