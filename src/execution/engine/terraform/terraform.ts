import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, Output, PlanOptions, PlanResult } from '../engine.ts'
import { type Diagnostic, describeDiagnostics, EngineError, type EngineErrorReason, interruptedError } from '../engine-error.ts'
import { captureStdout, fileIdentity, findExecutable } from '../find-executable.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import { declaredVariables } from './declared-variables.ts'
import { preparePluginCache, sharePlugins } from './plugin-cache.ts'
import { readPlanJson, type SnapshotMeta } from './read-plan-json.ts'
import { readIfPresent, readState } from './read-state.ts'
import { createUiProgress } from './ui-progress.ts'
import { isConfigurationError, isFollowUpError, type ResourceDiagnostic, readUiLine, type UiEvent } from './ui-stream.ts'
import { variablesFile } from './variables-file.ts'

/** What differs between Terraform and OpenTofu. */
export type Flavor = {
  name: 'terraform' | 'opentofu'
  title: string
  binary: string
  /** Environment variable of the worker that names the binary. */
  override: string
  howToInstall: string
  /** From this version on, a saved plan takes variables (needed for ephemeral ones). */
  planTakesVariables: [number, number]
}

export const terraformFlavor: Flavor = {
  name: 'terraform',
  title: 'Terraform',
  binary: 'terraform',
  override: 'OARLOCK_TERRAFORM',
  howToInstall: 'install it from https://developer.hashicorp.com/terraform/install, or set OARLOCK_TERRAFORM to the path of the binary',
  planTakesVariables: [1, 10],
}

export const opentofuFlavor: Flavor = {
  name: 'opentofu',
  title: 'OpenTofu',
  binary: 'tofu',
  override: 'OARLOCK_TOFU',
  howToInstall: 'install it from https://opentofu.org/docs/intro/install, or set OARLOCK_TOFU to the path of the binary',
  planTakesVariables: [1, 11],
}

/** Names of ours beside the user's files. An override file replaces the backend (or cloud) block of the user's without touching it. */
const overrideFile = 'oarlock_override.tf.json'
/** `show -json` and `state pull` print one line; a state of this size is refused by the store long before. */
const maxDocumentBytes = 512 * 1024 * 1024
const maxUiLineBytes = 64 * 1024 * 1024
/**
 * Terraform rewrites a local state after every resource; OpenTofu (1.12.6, internal/backend/local) only every TF_STATE_PERSIST_INTERVAL
 * seconds, 20 by default, and panics below 20: killed, it would lose up to 20 s of finished resources. This number of seconds overflows
 * its int64 of nanoseconds to a time in the past, so every change is due. terraform.test.ts holds that on the real binary.
 */
const persistAlways = '9223372037'
/** How long a user's own backend may be locked by somebody else (`state: External`). */
const externalLockTimeout = '60s'

/**
 * Terraform or OpenTofu. With Managed state the engine works on a local file through our override of the backend, without a lock of its
 * own: the Stack's lock is Oarlock's (invariant 1), and the Run directory belongs to one Run, so a second lock could only be left behind.
 * `env` is the environment of this process, in which the binary is looked for; tests pass their own.
 */
export function createTerraformEngine(flavor: Flavor, env: Record<string, string | undefined> = process.env): Engine {
  return new TerraformEngine(flavor, env)
}

class TerraformEngine implements Engine {
  readonly name: string
  readonly #flavor: Flavor
  readonly #env: Record<string, string | undefined>
  /** By path, for as long as the file is the same. */
  readonly #versions = new Map<string, { version: string; platform: string; file: string }>()

  constructor(flavor: Flavor, env: Record<string, string | undefined>) {
    this.name = flavor.name
    this.#flavor = flavor
    this.#env = env
  }

  async detect(env: Record<string, string | undefined>, { isFresh = false } = {}): Promise<Detection> {
    const { binary, override, howToInstall } = this.#flavor
    const { path, lookedFor } = await findExecutable(binary, override, env)
    if (path === undefined) return { found: false, lookedFor, howToInstall }
    const known = this.#versions.get(path)
    const file = await fileIdentity(path)
    if (!isFresh && known?.file === file) return { found: true, version: known.version, path }
    try {
      const answer: unknown = JSON.parse(await captureStdout(path, ['version', '-json'], { CHECKPOINT_DISABLE: '1', PATH: env.PATH ?? '' }))
      if (!isJsonObject(answer) || typeof answer.terraform_version !== 'string') throw new Error('no terraform_version in its answer')
      this.#versions.set(path, { version: answer.terraform_version, platform: String(answer.platform), file })
      return { found: true, version: answer.terraform_version, path }
    } catch (error) {
      const why = `${path} (found, but "${binary} version -json" failed: ${(error as Error).message.split('\n')[0]})`
      return { found: false, lookedFor: [why], howToInstall }
    }
  }

  async prepare(context: EngineContext): Promise<void> {
    const { directory, statePath, spec, log } = context
    const { path, version } = await this.#find()
    const isManaged = spec.state !== 'External'
    if (isManaged) {
      if (statePath === undefined) throw new TypeError('statePath is missing: Managed state needs a file')
      refuseEnv(context, ['TF_WORKSPACE', 'TF_DATA_DIR'])
      // Files copied from somebody's working directory must not choose another workspace, and with it another state.
      await rm(join(directory, '.terraform', 'environment'), { force: true })
      // The path is relative because a saved plan remembers it, and is applied in another Run's directory.
      const backend = { terraform: { backend: { local: { path: relative(directory, statePath) } } } }
      await writeFile(join(directory, overrideFile), `${JSON.stringify(backend, null, 2)}\n`)
    } else refuseEnv(context, ['TF_DATA_DIR'])
    if (context.env.TF_LOG !== undefined) log('TF_LOG is ignored: what it prints contains secrets')
    await preparePluginCache(join(context.cacheDir, `${this.name}-plugins`), ownPlugins(context))

    const json = atLeast(version, [1, 9])
    log(`${this.#flavor.title} ${version}: init`)
    const init = await this.#stream(context, path, ['init', '-input=false', '-reconfigure', '-no-color', ...(json ? ['-json'] : [])])
    if (init.exitCode !== 0) this.#fail(context, 'InitFailed', 'init', init)
    const added = await sharePlugins(join(context.cacheDir, `${this.name}-plugins`), ownPlugins(context))
    for (const provider of added) log(`cached provider ${provider}`)
    if (isManaged) await this.#checkBackend(context)
  }

  async plan(context: EngineContext, options: PlanOptions = {}): Promise<PlanResult> {
    const { path } = await this.#find()
    const intent = options.destroy ? 'destroy' : options.refreshOnly ? 'refresh' : 'apply'
    const variables = await this.#writeVariables(context)
    const file = join(context.scratch, `${intent}.tfplan`)
    const mode = intent === 'destroy' ? ['-destroy'] : intent === 'refresh' ? ['-refresh-only'] : []
    const args = ['plan', '-json', '-input=false', '-detailed-exitcode', `-out=${file}`, `-var-file=${variables.path}`]
    const plan = await this.#stream(context, path, [...args, ...mode, ...parallelism(context), ...locking(context)], variables)
    if (plan.exitCode !== 0 && plan.exitCode !== 2) this.#fail(context, 'PlanFailed', 'plan', plan)
    await chmod(file, 0o600)
    const reading = await this.readPlan(context, file)
    return { ...reading, intent, hasChanges: plan.exitCode === 2 || reading.hasChanges }
  }

  async readPlan(context: EngineContext, file: string): Promise<PlanResult> {
    const { path } = await this.#find()
    const document = await this.#capture(context, path, ['show', '-json', file], 'PlanFailed')
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const { summary, ...reading } = readPlanJson(document, await this.#stateMark(context))
    return { intent: 'apply', ...reading, summary: summary.map(line => maskSecrets(line, secrets)), file }
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const { path, version } = await this.#find()
    const { file, intent } = plan
    if (file === undefined) throw new TypeError('plan.file is missing: only a plan made by this engine can be applied')
    if (!plan.hasChanges) return { ...(await this.#results(context, path)), changed: false }

    const variables = await this.#writeVariables(context)
    const vars = atLeast(version, this.#flavor.planTakesVariables) ? [`-var-file=${variables.path}`] : []
    const progress = createUiProgress()
    const args = ['apply', '-json', '-input=false', ...vars, ...parallelism(context), ...locking(context), file]
    const applied = await this.#stream(context, path, args, variables, event => {
      const now = progress.add(event)
      if (now) context.progress(now)
    })
    const rescued = await this.#rescueState(context, path)
    if (applied.exitCode !== 0) this.#fail(context, intent === 'destroy' ? 'DestroyFailed' : 'ApplyFailed', intent, applied)
    if (rescued !== undefined) throw new EngineError('ApplyFailed', rescued, { retryable: true })
    return { ...(await this.#results(context, path)), changed: true }
  }

  async #find(): Promise<{ path: string; version: string }> {
    const detection = await this.detect(this.#env)
    if (detection.found) return detection
    throw engineNotFound(this.#flavor.title, detection)
  }

  async #writeVariables(context: EngineContext): Promise<{ path: string; variableOfLine(line: number): string | undefined }> {
    const declared = declaredVariables(await rootFiles(context.directory))
    const explicit = Object.keys(context.spec.variables ?? {})
    const { text, variableOfLine } = variablesFile(context.variables, declared, explicit)
    const path = join(context.scratch, 'variables.tfvars.json')
    await writeFile(path, text, { mode: 0o600 })
    return { path, variableOfLine }
  }

  /** Runs a command that prints the machine-readable UI; lines become log lines, findings are kept. */
  async #stream(
    context: EngineContext,
    path: string,
    args: string[],
    variables?: { path: string; variableOfLine(line: number): string | undefined },
    onEvent?: (event: UiEvent) => void,
  ): Promise<Streamed> {
    const findings: ResourceDiagnostic[] = []
    const errorText: string[] = []
    const { exitCode } = await context.run({
      ...this.#command(context, path, args),
      maxLineBytes: maxUiLineBytes,
      onStdoutLine: line => {
        const { event, log } = readUiLine(line, { variablesFile: variables?.path, variableOfLine: variables?.variableOfLine })
        if (event.kind === 'diagnostic') findings.push(event)
        onEvent?.(event)
        // An apply repeats the plan before it starts; the log has it already.
        if (event.kind !== 'planned' || args[0] !== 'apply') log.forEach(line => void context.log(line))
      },
      onStderrLine: line => {
        if (errorText.length < 50 && line.trim() !== '') errorText.push(line.trim())
        context.log(line)
      },
    })
    return { exitCode, findings, errorText }
  }

  /** Runs a command that prints one JSON document. */
  async #capture(context: EngineContext, path: string, args: string[], reason: EngineErrorReason): Promise<unknown> {
    const lines: string[] = []
    const errors: string[] = []
    const { exitCode } = await context.run({
      ...this.#command(context, path, args),
      maxLineBytes: maxDocumentBytes,
      onStdoutLine: line => void lines.push(line),
      onStderrLine: line => void errors.push(line),
    })
    if (exitCode === 0) return JSON.parse(lines.join('\n') || 'null')
    for (const line of errors) context.log(line)
    this.#fail(context, reason, args[0] ?? '', { exitCode, findings: [], errorText: errors.map(line => line.trim()).filter(Boolean) })
  }

  #fail(context: EngineContext, reason: EngineErrorReason, during: string, { exitCode, findings, errorText }: Streamed): never {
    const { title, binary } = this.#flavor
    if (context.signal.aborted) throw interruptedError(title, during)
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const errors = findings.filter(({ diagnostic }) => diagnostic.severity === 'error')
    const real = errors.some(finding => !isFollowUpError(finding)) ? errors.filter(finding => !isFollowUpError(finding)) : errors
    const diagnostics = findings.map(({ diagnostic }) => maskDiagnostic(diagnostic, secrets))
    const shown = real.map(({ diagnostic }) => maskDiagnostic(diagnostic, secrets))
    const fallback = `"${binary} ${during}" ended with exit code ${exitCode}${errorText.length > 0 ? `: ${errorText.join(' ')}` : ''}`
    const message = describeDiagnostics(shown, maskSecrets(fallback, secrets))
    if (real.some(({ diagnostic }) => /plan is stale|plan does not match/i.test(diagnostic.summary))) {
      throw new EngineError('PlanOutdated', `the plan is outdated: the state changed after it was made; plan again`, {
        retryable: true,
        diagnostics,
      })
    }
    const isConfiguration = (reason === 'PlanFailed' || reason === 'InitFailed') && real.length > 0 && real.every(isConfigurationError)
    throw new EngineError(isConfiguration ? 'InvalidConfiguration' : reason, message, { retryable: !isConfiguration, diagnostics })
  }

  #command(context: EngineContext, path: string, args: string[]) {
    return { command: path, args, cwd: context.directory, env: this.#engineEnv(context, path), signal: context.signal }
  }

  /** What the worker's machine sets for Terraform (mirrors, registry credentials), then the Stack's, then what must be so. */
  #engineEnv(context: EngineContext, path: string): Record<string, string> {
    const user = Object.fromEntries(Object.entries(context.env).filter(([name]) => !/^TF_(LOG|LOG_.*|PLUGIN_CACHE_.*)$/.test(name)))
    const config = this.#env.TF_CLI_CONFIG_FILE
    return {
      // A file that is not there would be a warning in the log of every command.
      ...(config !== undefined && existsSync(config) && { TF_CLI_CONFIG_FILE: config }),
      ...user,
      TF_IN_AUTOMATION: '1',
      TF_INPUT: '0',
      CHECKPOINT_DISABLE: '1',
      TF_PLUGIN_CACHE_DIR: ownPlugins(context),
      // Without it the cache is not used for a configuration that has no lock file. The lock file it would spoil is
      // in the Run's copy of the source, which is thrown away.
      TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE: '1',
      ...(this.#needsPersistTrick(context, path) && { TF_STATE_PERSIST_INTERVAL: persistAlways }),
    }
  }

  /** Not for the user's own backend, where each write may be a slow request, nor for 32-bit builds, which cannot read the number. */
  #needsPersistTrick({ spec }: EngineContext, path: string): boolean {
    return this.name === 'opentofu' && spec.state !== 'External' && /_(amd64|arm64)$/.test(this.#versions.get(path)?.platform ?? '')
  }

  /** An override file of the user's that sorts after ours could set the backend again: then the state would be lost with the Run. */
  async #checkBackend({ directory, statePath }: EngineContext): Promise<void> {
    const text = await readIfPresent(join(directory, '.terraform', 'terraform.tfstate'))
    const wanted = relative(directory, statePath ?? '')
    const chosen: unknown = text === undefined ? undefined : JSON.parse(text)
    const backend = isJsonObject(chosen) && isJsonObject(chosen.backend) ? chosen.backend : {}
    const config = isJsonObject(backend.config) ? backend.config : {}
    if (backend.type === 'local' && config.path === wanted) return
    throw new EngineError(
      'InvalidConfiguration',
      `spec.state is Managed, but an override file of the source sets backend ${JSON.stringify(backend.type ?? 'none')}: remove it, or use state External`,
      { retryable: false },
    )
  }

  async #stateMark(context: EngineContext): Promise<SnapshotMeta> {
    if (context.spec.state === 'External' || context.statePath === undefined) return undefined
    return readState(await readIfPresent(context.statePath)).meta
  }

  async #results(context: EngineContext, path: string): Promise<Omit<ApplyResult, 'changed'>> {
    const outputs = readOutputs(await this.#capture(context, path, ['output', '-json'], 'ApplyFailed'))
    const local = context.spec.state === 'External' ? undefined : await readIfPresent(context.statePath ?? '')
    // An encrypted state (OpenTofu) or the user's own backend is read through the engine.
    const isReadable = context.spec.state !== 'External' && !local?.includes('"encrypted_data"')
    const text = isReadable ? local : JSON.stringify(await this.#capture(context, path, ['state', 'pull'], 'ApplyFailed'))
    return { outputs, resources: readState(text === 'null' ? undefined : text).resources }
  }

  /**
   * Terraform writes `errored.tfstate` when it could not save the state where it belongs (a full disk, a backend that is gone). It is the
   * only record of what was made, so it takes the place of the state. Returns what to tell when that fails, too.
   */
  async #rescueState(context: EngineContext, path: string): Promise<string | undefined> {
    const errored = join(context.directory, 'errored.tfstate')
    const text = await readIfPresent(errored)
    if (text === undefined) return undefined
    if (context.spec.state !== 'External' && context.statePath !== undefined) {
      await writeFile(context.statePath, text, { mode: 0o600 })
      context.log(
        `${this.#flavor.title} could not save its state; recovered it from errored.tfstate (serial ${readState(text).meta.serial})`,
      )
      return undefined
    }
    context.log(`${this.#flavor.title} could not save its state to your backend and left errored.tfstate; trying "state push" once`)
    const pushed = await this.#stream(context, path, ['state', 'push', 'errored.tfstate'])
    if (pushed.exitCode === 0) return undefined
    // One file per Stack, the newest (invariant 10): it has everything the ones before had.
    const kept = join(context.cacheDir, 'errored-states', `${context.stack.uid}.tfstate`)
    await mkdir(join(context.cacheDir, 'errored-states'), { recursive: true, mode: 0o700 })
    await writeFile(kept, text, { mode: 0o600 })
    return `the state could not be saved to your backend: it is kept on the worker as ${kept}; push it with "${this.#flavor.binary} state push"`
  }
}

type Streamed = { exitCode: number | null; findings: ResourceDiagnostic[]; errorText: string[] }

/** Says what was looked for, where, and how to get it. */
function engineNotFound(title: string, { lookedFor, howToInstall }: Extract<Detection, { found: false }>): EngineError {
  return new EngineError('EngineNotFound', `${title} was not found: looked for ${lookedFor.join(', ')}; ${howToInstall}`, {
    retryable: false,
  })
}

function refuseEnv({ env }: EngineContext, names: string[]): void {
  const name = names.find(candidate => env[candidate] !== undefined)
  if (name === undefined) return
  throw new EngineError(
    'InvalidSpec',
    `spec.env ${name} is not allowed: it would move the state to where Oarlock does not find it; remove it`,
    {
      retryable: false,
    },
  )
}

function ownPlugins({ scratch }: EngineContext): string {
  return join(scratch, 'plugins')
}

function parallelism({ spec }: EngineContext): string[] {
  return spec.terraform?.parallelism === undefined ? [] : [`-parallelism=${spec.terraform.parallelism}`]
}

function locking({ spec }: EngineContext): string[] {
  return spec.state === 'External' ? [`-lock-timeout=${externalLockTimeout}`] : ['-lock=false']
}

async function rootFiles(directory: string): Promise<{ name: string; text: string }[]> {
  const names = (await readdir(directory)).filter(name => /\.(tf|tofu)(\.json)?$/.test(name))
  return await Promise.all(names.map(async name => ({ name, text: await readFile(join(directory, name), 'utf8') })))
}

function readOutputs(document: unknown): Record<string, Output> {
  const outputs: Record<string, Output> = {}
  for (const [name, output] of Object.entries(isJsonObject(document) ? document : {})) {
    if (isJsonObject(output)) outputs[name] = { value: output.value as Json, sensitive: output.sensitive === true }
  }
  return outputs
}

function maskDiagnostic(diagnostic: Diagnostic, secrets: readonly string[]): Diagnostic {
  const { summary, detail } = diagnostic
  return { ...diagnostic, summary: maskSecrets(summary, secrets), ...(detail !== undefined && { detail: maskSecrets(detail, secrets) }) }
}

/** `atLeast('1.11.4', [1, 9])`; pre-release parts do not count. */
function atLeast(version: string, [major, minor]: [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(part => Number.parseInt(part, 10))
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}
