import { basename, join } from 'node:path'
import type { RunOptions } from '../../../api/index.ts'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, Output, PlanOptions, PlanResult, WarmContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { maxPlanBytes, maxStateBytes } from '../file-limits.ts'
import { jsonDigest } from '../json-digest.ts'
import { secretValues } from '../secret-values.ts'
import { declaredVariables } from './declared-variables.ts'
import type { Flavor } from './flavor.ts'
import { checkBackend, isManaged, overrideBackend, recoverErroredState, rejectEnv, rejectStateInFiles } from './managed-state.ts'
import { rootModuleFiles } from './module-files.ts'
import { keepProviders, linkProviders, removeDamagedProviders } from './plugin-cache.ts'
import { readPlanJson, type SnapshotMeta } from './read-plan-json.ts'
import { readState } from './read-state.ts'
import { planVariables, redactPlan, sensitiveVariables } from './redact-plan.ts'
import { linkSharedProviders } from './shared-providers.ts'
import { type CliResult, runPluginDirectory, TerraformCli, type VariablesFilePath } from './terraform-cli.ts'
import { createUiProgress } from './ui-progress.ts'
import { variablesFile } from './variables-file.ts'

/** How long to wait for the lock of the user's own backend (`state: External`). */
const externalLockTimeout = '60s'

/**
 * Terraform or OpenTofu. With Managed state the engine works on a local file, because an override file sets the backend. Terraform's own
 * lock is off: the Stack's lock is Oarlock's (invariant 1) and the Run directory belongs to one Run, so a second lock could only be left behind.
 * `env` is the environment of this process, in which the binary is searched for; tests pass their own.
 */
export function createTerraformEngine(flavor: Flavor, env: Record<string, string | undefined> = process.env): Engine {
  return new TerraformEngine(flavor, env)
}

class TerraformEngine implements Engine {
  readonly name: string
  readonly #flavor: Flavor
  readonly #cli: TerraformCli
  readonly #env: Record<string, string | undefined>

  constructor(flavor: Flavor, env: Record<string, string | undefined>) {
    this.name = flavor.name
    this.#flavor = flavor
    this.#env = env
    this.#cli = new TerraformCli(flavor, env)
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#cli.detect(env, options)
  }

  readonly warm = async (context: WarmContext): Promise<void> => {
    await this.#linkProviders(context, await this.#cli.find())
  }

  async prepare(context: EngineContext): Promise<void> {
    const binary = await this.#cli.find()
    if (isManaged(context)) {
      await rejectStateInFiles(context, await rootModuleFiles(context, this.#flavor.name))
      await overrideBackend(context)
    } else rejectEnv(context, ['TF_DATA_DIR'])
    if (context.env.TF_LOG !== undefined) context.log('TF_LOG is ignored, because its output contains secrets')
    const plugins = runPluginDirectory(context)
    const links = await this.#linkProviders(context, binary)

    const json = isAtLeast(binary.version, [1, 9])
    context.log(`${this.#flavor.title} ${binary.version}: init`)
    const args = ['init', '-input=false', '-reconfigure', '-no-color', ...(json ? ['-json'] : [])]
    // Modules and providers come from elsewhere and need no cloud credentials; the user's own backend does.
    const withheld = withheldFromInit(context)
    const install = { ...context, env: Object.fromEntries(Object.entries(context.env).filter(([name]) => !withheld.includes(name))) }
    const needsBackend = !isManaged(context) && withheld.length > 0
    const init = await this.#cli.stream(install, binary, needsBackend ? [...args, '-backend=false'] : args)
    if (init.exitCode !== 0 && withheld.length > 0) context.log(`init did not get ${withheld.join(', ')} (spec.terraform.initEnvironment)`)
    if (init.exitCode !== 0) {
      // The error of init is reported even if the cache cannot be read.
      const report = (error: unknown) => context.log(`the provider cache was not checked for damage: ${(error as Error).message}`)
      if (isAboutChecksums(init)) await removeDamagedProviders(context, links).catch(report)
      this.#cli.fail(context, 'InitFailed', 'init', init)
    }
    if (needsBackend) await this.#initBackend(context, binary, [...args, '-get=false'])
    await keepProviders(context, plugins, links)
    if (isManaged(context)) await checkBackend(context)
  }

  /** Those that the host has, or that Runs of the trust domain share. */
  async #linkProviders(context: WarmContext, binary: { path: string; version: string }): ReturnType<typeof linkProviders> {
    const own = runPluginDirectory(context)
    const platform = this.#cli.platformOf(binary)
    return await context.providerUsage.measure(async () => {
      const links = await linkProviders(context, own, platform)
      await linkSharedProviders(context, { flavor: this.#flavor.name, binary: binary.path, platform, workerEnv: this.#env, own, links })
      return links
    })
  }

  async #initBackend(context: EngineContext, binary: { path: string; version: string }, args: string[]): Promise<void> {
    const init = await this.#cli.stream(context, binary, args)
    if (init.exitCode !== 0) this.#cli.fail(context, 'InitFailed', 'init', init)
  }

  async plan(context: EngineContext, options: PlanOptions = {}): Promise<PlanResult> {
    const binary = await this.#cli.find()
    const intent = options.destroy ? 'destroy' : options.refreshOnly ? 'refresh' : 'apply'
    const variables = await writeVariables(context, this.#flavor)
    const written = join(context.scratch, `${intent}.tfplan`)
    const mode = intent === 'destroy' ? ['-destroy'] : intent === 'refresh' ? ['-refresh-only'] : []
    const args = ['plan', '-json', '-input=false', '-detailed-exitcode', `-out=${written}`, `-var-file=${variables.path}`]
    const more = [...mode, ...planArguments(options.options), ...parallelism(context), ...locking(context)]
    const plan = await this.#cli.stream(context, binary, [...args, ...more], variables)
    if (plan.exitCode !== 0 && plan.exitCode !== 2) this.#cli.fail(context, 'PlanFailed', 'plan', plan)
    const kept = await keepPlan(context, written)
    const show = () => this.#cli.captureText(context, binary, ['show', '-no-color', kept], 'PlanFailed')
    // Both start the providers for their schemas, so they run at the same time.
    const shown = plan.exitCode === 2 ? show() : undefined
    shown?.catch(() => {})
    const { document, ...result } = await this.#readPlan(context, kept)
    const hasChanges = plan.exitCode === 2 || result.hasChanges
    if (!hasChanges) return { ...result, intent, hasChanges }
    const text = await (shown ?? show())
    return { ...result, intent, hasChanges, diff: { text, document: redactPlan(document, context.sensitiveNames) } }
  }

  async readPlan(context: EngineContext, file: string, options: PlanOptions = {}): Promise<PlanResult> {
    const { document: _, ...plan } = await this.#readPlan(context, file)
    // A plan that waited for approval has changes, also if they are only in the state.
    if (options.refreshOnly) return { ...plan, intent: 'refresh', hasChanges: true }
    return options.destroy ? { ...plan, intent: 'destroy' } : plan
  }

  async #readPlan(context: EngineContext, file: string): Promise<PlanResult & { document: Json }> {
    const binary = await this.#cli.find()
    const document = (await this.#cli.capture(context, binary, ['show', '-json', file], 'PlanFailed')) as Json
    const secrets = secretValues(planVariables(document), sensitiveVariables(document))
    const plan = readPlanJson(document, await snapshotMeta(context))
    const bytes = await context.files.read(file, { maxBytes: maxPlanBytes })
    if (!bytes) throw new TypeError(`${file} does not exist`)
    // The JSON has a provisioner's command only as references, and of its scripts nothing: the file and the source have all of it.
    const digest = jsonDigest({ changes: plan.digest, file: sha256(bytes), source: context.sourceDigest })
    return { intent: 'apply', ...plan, digest, file, secrets, document }
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const binary = await this.#cli.find()
    const { file, intent } = plan
    if (file === undefined) throw new TypeError('plan.file is missing: only a plan made by this engine can be applied')
    if (!plan.hasChanges) return { ...(await this.#results(context, binary)), changed: false }

    const variables = await writeVariables(context, this.#flavor)
    const vars = isAtLeast(binary.version, this.#flavor.planTakesVariables) ? [`-var-file=${variables.path}`] : []
    const progress = createUiProgress()
    const args = ['apply', '-json', '-input=false', ...vars, ...parallelism(context), ...locking(context), file]
    let applied: CliResult
    try {
      applied = await this.#cli.stream(context, binary, args, variables, event => {
        const now = progress.add(event)
        if (now) context.progress(now)
      })
    } finally {
      // It was killed: otherwise it waits for what it has begun.
      const operations = progress.creating.map(address => ({ type: 'creating', urn: address }))
      if (operations.length > 0) context.pendingOperations(operations, { isOwn: true })
    }
    const unsaved = await recoverErroredState(context, this.#flavor, errored =>
      this.#cli.stream(context, binary, ['state', 'push', errored]),
    )
    if (applied.exitCode !== 0) this.#cli.fail(context, intent === 'destroy' ? 'DestroyFailed' : 'ApplyFailed', intent, applied)
    if (unsaved !== undefined) throw new EngineError('ApplyFailed', unsaved, { retryable: true })
    return { ...(await this.#results(context, binary)), changed: true }
  }

  async readOutputs(context: EngineContext): Promise<Omit<ApplyResult, 'changed'>> {
    return await this.#results(context, await this.#cli.find())
  }

  async #results(context: EngineContext, binary: { path: string; version: string }): Promise<Omit<ApplyResult, 'changed'>> {
    const outputs = readOutputs(await this.#cli.capture(context, binary, ['output', '-json'], 'ApplyFailed'))
    const local = isManaged(context) ? await context.files.readText(context.statePath ?? '', { maxBytes: maxStateBytes }) : undefined
    // An encrypted state (OpenTofu) and the user's own backend are read through the engine.
    const isReadable = isManaged(context) && !local?.includes('"encrypted_data"')
    const text = isReadable ? local : JSON.stringify(await this.#cli.capture(context, binary, ['state', 'pull'], 'ApplyFailed'))
    return { outputs, resources: readState(text === 'null' ? undefined : text).resources }
  }
}

/** The engine found a package that differs from the lock file or from what it has downloaded. */
function isAboutChecksums({ diagnostics }: CliResult): boolean {
  return diagnostics.some(({ diagnostic }) => /checksum|does not match/i.test(`${diagnostic.summary} ${diagnostic.detail ?? ''}`))
}

/** The credentials that init does not get. Terraform itself reads TF_*, and git, for modules, GIT_* and SSH_*. */
function withheldFromInit({ credentialNames, spec }: EngineContext): string[] {
  const wanted = spec.terraform?.initEnvironment ?? []
  return credentialNames.filter(name => !/^(TF|GIT|SSH)_/.test(name) && !wanted.includes(name)).sort()
}

async function writeVariables(context: EngineContext, flavor: Flavor): Promise<VariablesFilePath> {
  const declared = declaredVariables(await rootModuleFiles(context, flavor.name))
  const explicit = Object.keys(context.spec.variables ?? {})
  const { text, variableOfLine } = variablesFile(context.variables, declared, explicit)
  const path = join(context.inputs, 'variables.tfvars.json')
  await context.files.write(path, text)
  return { path, variableOfLine }
}

/** Moves the plan to where a sandboxed program cannot change it any more: what is shown, approved and applied is the same file. */
async function keepPlan({ files, inputs }: EngineContext, written: string): Promise<string> {
  const bytes = await files.read(written, { maxBytes: maxPlanBytes })
  if (!bytes) throw new EngineError('PlanFailed', 'the engine reported success, but wrote no plan', { retryable: true })
  const kept = join(inputs, basename(written))
  await files.write(kept, bytes)
  await files.remove(written)
  return kept
}

async function snapshotMeta(context: EngineContext): Promise<SnapshotMeta> {
  if (!isManaged(context) || context.statePath === undefined) return undefined
  return readState(await context.files.readText(context.statePath, { maxBytes: maxStateBytes })).meta
}

/** Each address is one argument of its own, so that nothing in it is another option. */
function planArguments({ targets = [], replace = [], refresh }: RunOptions = {}): string[] {
  const all = [...targets.map(address => `-target=${address}`), ...replace.map(address => `-replace=${address}`)]
  return refresh === false ? [...all, '-refresh=false'] : all
}

function parallelism({ spec }: EngineContext): string[] {
  return spec.terraform?.parallelism === undefined ? [] : [`-parallelism=${spec.terraform.parallelism}`]
}

function locking(context: EngineContext): string[] {
  return isManaged(context) ? ['-lock=false'] : [`-lock-timeout=${externalLockTimeout}`]
}

function readOutputs(document: unknown): Record<string, Output> {
  const outputs: Record<string, Output> = {}
  for (const [name, output] of Object.entries(isJsonObject(document) ? document : {})) {
    if (isJsonObject(output)) outputs[name] = { value: output.value as Json, sensitive: output.sensitive === true }
  }
  return outputs
}

/** `isAtLeast('1.11.4', [1, 9])`; pre-release parts are ignored. */
function isAtLeast(version: string, [major, minor]: [number, number]): boolean {
  const [actualMajor = 0, actualMinor = 0] = version.split('.').map(part => Number.parseInt(part, 10))
  return actualMajor > major || (actualMajor === major && actualMinor >= minor)
}
