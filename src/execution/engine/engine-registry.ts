import type { Detection, Engine } from './engine.ts'

/** Loaded when a Run needs them: together they and what they import are a third of what a worker loads, and it uses one. */
const engines: Readonly<Record<string, () => Promise<Engine>>> = {
  terraform: async () => {
    const { createTerraformEngine, terraformFlavor } = await import('./terraform/terraform.ts')
    return createTerraformEngine(terraformFlavor)
  },
  opentofu: async () => {
    const { createTerraformEngine, opentofuFlavor } = await import('./terraform/terraform.ts')
    return createTerraformEngine(opentofuFlavor)
  },
  manifests: async () => (await import('./manifests/manifests.ts')).createManifestsEngine(),
  command: async () => (await import('./command/command.ts')).createCommandEngine(),
}
const loaded = new Map<string, Promise<Engine>>()

/** @throws {RangeError} for a name that no engine has. */
export async function loadEngine(name: string): Promise<Engine> {
  const load = Object.hasOwn(engines, name) ? engines[name] : undefined
  if (!load) throw new RangeError(`engine ${JSON.stringify(name)} is not known: it must be one of ${Object.keys(engines).join(', ')}`)
  const engine = loaded.get(name) ?? load()
  loaded.set(name, engine)
  return await engine
}

/** What this machine can run, by engine name. `env` is the environment to look in; nothing is installed or downloaded. */
export async function detectEngines(
  env: Record<string, string | undefined> = process.env,
  options: { isFresh?: boolean } = {},
): Promise<Record<string, Detection>> {
  const detect = async (name: string) => [name, await (await loadEngine(name)).detect(env, options)] as const
  return Object.fromEntries(await Promise.all(Object.keys(engines).map(detect)))
}
