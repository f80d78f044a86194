import type { EngineName } from '../../api/index.ts'
import type { InterruptTarget } from '../workspace/index.ts'
import type { Detection, Engine } from './engine.ts'

/** Loaded on first use: all engines and their imports are a third of what a worker would load, and a worker usually needs one of them. */
const engines: Readonly<Record<EngineName, () => Promise<Engine>>> = {
  terraform: async () => {
    const [{ createTerraformEngine }, { terraformFlavor }] = await Promise.all([
      import('./terraform/terraform.ts'),
      import('./terraform/flavor.ts'),
    ])
    return createTerraformEngine(terraformFlavor)
  },
  opentofu: async () => {
    const [{ createTerraformEngine }, { opentofuFlavor }] = await Promise.all([
      import('./terraform/terraform.ts'),
      import('./terraform/flavor.ts'),
    ])
    return createTerraformEngine(opentofuFlavor)
  },
  pulumi: async () => (await import('./pulumi/pulumi.ts')).createPulumiEngine(),
  ansible: async () => (await import('./ansible/ansible.ts')).createAnsibleEngine(),
  manifests: async () => (await import('./manifests/manifests.ts')).createManifestsEngine(),
  command: async () => (await import('./command/command.ts')).createCommandEngine(),
}

/** Terraform, OpenTofu and Pulumi stop their own processes; a command may be a shell script, in which every process must get SIGINT, and Ansible has a process for each host. */
export function interruptTargetOf(engine: string): InterruptTarget {
  return engine === 'terraform' || engine === 'opentofu' || engine === 'pulumi' ? 'Program' : 'Group'
}

const loaded = new Map<string, Promise<Engine>>()

/** @throws {RangeError} when no engine has this name. */
export async function loadEngine(name: string): Promise<Engine> {
  const load = Object.hasOwn(engines, name) ? engines[name as EngineName] : undefined
  if (!load) throw new RangeError(`unknown engine ${JSON.stringify(name)}: it must be one of ${Object.keys(engines).join(', ')}`)
  const engine = loaded.get(name) ?? load()
  loaded.set(name, engine)
  return await engine
}

/** The engines that this machine can run, by name. They are searched for in `env`; nothing is installed or downloaded. */
export async function detectEngines(
  env: Record<string, string | undefined> = process.env,
  options: { isFresh?: boolean } = {},
): Promise<Record<string, Detection>> {
  const detect = async (name: string) => [name, await (await loadEngine(name)).detect(env, options)] as const
  return Object.fromEntries(await Promise.all(Object.keys(engines).map(detect)))
}
