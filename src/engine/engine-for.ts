import { createCommandEngine } from './command/command.ts'
import type { Detection, Engine } from './engine.ts'
import { createManifestsEngine } from './manifests/manifests.ts'
import { createTerraformEngine, opentofuFlavor, terraformFlavor } from './terraform/terraform.ts'

const engines: readonly Engine[] = [
  createTerraformEngine(terraformFlavor),
  createTerraformEngine(opentofuFlavor),
  createManifestsEngine(),
  createCommandEngine(),
]

/** @throws {RangeError} for a name that no engine has. */
export function engineFor(name: string): Engine {
  const engine = engines.find(candidate => candidate.name === name)
  if (engine) return engine
  throw new RangeError(`engine ${JSON.stringify(name)} is not known: it must be one of ${engines.map(each => each.name).join(', ')}`)
}

/** What this machine can run, by engine name. `env` is the environment to look in; nothing is installed or downloaded. */
export async function detectEngines(env: Record<string, string | undefined> = process.env): Promise<Record<string, Detection>> {
  const found = await Promise.all(engines.map(async engine => [engine.name, await engine.detect(env)] as const))
  return Object.fromEntries(found)
}
