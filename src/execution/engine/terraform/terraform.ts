import { chmod, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { ApplyResult, Detection, Engine, EngineContext, Output, PlanOptions, PlanResult } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { readRegularFile } from '../read-regular-file.ts'
import { maskSecrets, secretValues } from '../secret-values.ts'
import { declaredVariables } from './declared-variables.ts'
import type { Flavor } from './flavor.ts'
import { checkBackend, isManaged, overrideBackend, recoverErroredState, rejectEnv } from './managed-state.ts'
import { preparePluginCache, sharePlugins } from './plugin-cache.ts'
import { readPlanJson, type SnapshotMeta } from './read-plan-json.ts'
import { readState } from './read-state.ts'
import { runPluginDirectory, TerraformCli, type VariablesFilePath } from './terraform-cli.ts'
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

  constructor(flavor: Flavor, env: Record<string, string | undefined>) {
    this.name = flavor.name
    this.#flavor = flavor
    this.#cli = new TerraformCli(flavor, env)
  }

  async detect(env: Record<string, string | undefined>, options?: { isFresh?: boolean }): Promise<Detection> {
    return await this.#cli.detect(env, options)
  }

  async prepare(context: EngineContext): Promise<void> {
    const binary = await this.#cli.find()
    if (isManaged(context)) await overrideBackend(context)
    else rejectEnv(context, ['TF_DATA_DIR'])
    if (context.env.TF_LOG !== undefined) context.log('TF_LOG is ignored, because its output contains secrets')
    const sharedPlugins = join(context.cacheDir, `${this.name}-plugins`)
    await preparePluginCache(sharedPlugins, runPluginDirectory(context))

    const json = isAtLeast(binary.version, [1, 9])
    context.log(`${this.#flavor.title} ${binary.version}: init`)
    const args = ['init', '-input=false', '-reconfigure', '-no-color', ...(json ? ['-json'] : [])]
    const init = await this.#cli.stream(context, binary, args)
    if (init.exitCode !== 0) this.#cli.fail(context, 'InitFailed', 'init', init)
    const added = await sharePlugins(sharedPlugins, runPluginDirectory(context))
    for (const provider of added) context.log(`cached provider ${provider}`)
    if (isManaged(context)) await checkBackend(context)
  }

  async plan(context: EngineContext, options: PlanOptions = {}): Promise<PlanResult> {
    const binary = await this.#cli.find()
    const intent = options.destroy ? 'destroy' : options.refreshOnly ? 'refresh' : 'apply'
    const variables = await writeVariables(context)
    const file = join(context.scratch, `${intent}.tfplan`)
    const mode = intent === 'destroy' ? ['-destroy'] : intent === 'refresh' ? ['-refresh-only'] : []
    const args = ['plan', '-json', '-input=false', '-detailed-exitcode', `-out=${file}`, `-var-file=${variables.path}`]
    const plan = await this.#cli.stream(context, binary, [...args, ...mode, ...parallelism(context), ...locking(context)], variables)
    if (plan.exitCode !== 0 && plan.exitCode !== 2) this.#cli.fail(context, 'PlanFailed', 'plan', plan)
    await chmod(file, 0o600)
    const result = await this.readPlan(context, file)
    return { ...result, intent, hasChanges: plan.exitCode === 2 || result.hasChanges }
  }

  async readPlan(context: EngineContext, file: string): Promise<PlanResult> {
    const binary = await this.#cli.find()
    const document = await this.#cli.capture(context, binary, ['show', '-json', file], 'PlanFailed')
    const secrets = secretValues(context.variables, context.sensitiveNames)
    const { summary, ...plan } = readPlanJson(document, await snapshotMeta(context))
    return { intent: 'apply', ...plan, summary: summary.map(line => maskSecrets(line, secrets)), file }
  }

  async apply(context: EngineContext, plan: PlanResult): Promise<ApplyResult> {
    const binary = await this.#cli.find()
    const { file, intent } = plan
    if (file === undefined) throw new TypeError('plan.file is missing: only a plan made by this engine can be applied')
    if (!plan.hasChanges) return { ...(await this.#results(context, binary)), changed: false }

    const variables = await writeVariables(context)
    const vars = isAtLeast(binary.version, this.#flavor.planTakesVariables) ? [`-var-file=${variables.path}`] : []
    const progress = createUiProgress()
    const args = ['apply', '-json', '-input=false', ...vars, ...parallelism(context), ...locking(context), file]
    const applied = await this.#cli.stream(context, binary, args, variables, event => {
      const now = progress.add(event)
      if (now) context.progress(now)
    })
    const unsaved = await recoverErroredState(context, this.#flavor, errored =>
      this.#cli.stream(context, binary, ['state', 'push', errored]),
    )
    if (applied.exitCode !== 0) this.#cli.fail(context, intent === 'destroy' ? 'DestroyFailed' : 'ApplyFailed', intent, applied)
    if (unsaved !== undefined) throw new EngineError('ApplyFailed', unsaved, { retryable: true })
    return { ...(await this.#results(context, binary)), changed: true }
  }

  async #results(context: EngineContext, binary: { path: string; version: string }): Promise<Omit<ApplyResult, 'changed'>> {
    const outputs = readOutputs(await this.#cli.capture(context, binary, ['output', '-json'], 'ApplyFailed'))
    const local = isManaged(context) ? await readRegularFile(context.statePath ?? '') : undefined
    // An encrypted state (OpenTofu) and the user's own backend are read through the engine.
    const isReadable = isManaged(context) && !local?.includes('"encrypted_data"')
    const text = isReadable ? local : JSON.stringify(await this.#cli.capture(context, binary, ['state', 'pull'], 'ApplyFailed'))
    return { outputs, resources: readState(text === 'null' ? undefined : text).resources }
  }
}

async function writeVariables(context: EngineContext): Promise<VariablesFilePath> {
  const declared = declaredVariables(await rootModuleFiles(context.directory))
  const explicit = Object.keys(context.spec.variables ?? {})
  const { text, variableOfLine } = variablesFile(context.variables, declared, explicit)
  const path = join(context.scratch, 'variables.tfvars.json')
  await writeFile(path, text, { mode: 0o600 })
  return { path, variableOfLine }
}

async function rootModuleFiles(directory: string): Promise<{ name: string; text: string }[]> {
  const names = (await readdir(directory)).filter(name => /\.(tf|tofu)(\.json)?$/.test(name))
  return await Promise.all(names.map(async name => ({ name, text: await readFile(join(directory, name), 'utf8') })))
}

async function snapshotMeta(context: EngineContext): Promise<SnapshotMeta> {
  if (!isManaged(context) || context.statePath === undefined) return undefined
  return readState(await readRegularFile(context.statePath)).meta
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
