import { sha256 } from '../../kubernetes/util/index.ts'
import type { DependencyInput } from './dependency-input.ts'
import type { InstallContext } from './install-context.ts'
import type { PackageManager } from './managers/package-manager.ts'

/** 16 MiB and 0.04 s for each guess of a value: a record, and the digest in the status of a Run, must not make a short secret easy to find. */
const scryptCost = { N: 2 ** 14, r: 8, p: 1 }

/**
 * The variables of an install that its result may depend on. Those of the Stack are all inputs, with their values: any of them (PATH, LD_PRELOAD,
 * a proxy) may decide what the package manager executes or downloads, and other Stacks of the trust domain use the tree. Those of the worker are
 * chosen by its administrator: only what `manager.environment` matches, and of its credentials only whether the install gets them.
 */
export async function environmentInputs(
  { credentialNames, workerEnvNames }: Pick<InstallContext, 'credentialNames' | 'workerEnvNames'>,
  manager: Pick<PackageManager, 'environment'>,
  env: Readonly<Record<string, string>>,
): Promise<DependencyInput[]> {
  const inputs: DependencyInput[] = []
  for (const [name, value] of Object.entries(env)) {
    const isSecret = credentialNames.includes(name)
    if (!workerEnvNames.includes(name))
      inputs.push({ kind: 'environment', name, value: isSecret ? await hashSecret(name, value) : `sha256:${sha256(value)}` })
    else if (isSecret) inputs.push({ kind: 'environment', name, value: 'set' })
    else if (manager.environment.test(name)) inputs.push({ kind: 'environment', name, value: `sha256:${sha256(value)}` })
  }
  return inputs
}

/** The same on all machines: placement compares digests. */
async function hashSecret(name: string, value: string): Promise<string> {
  const { scrypt } = process.getBuiltinModule('node:crypto')
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  scrypt(value, `oarlock dependencies ${name}`, 32, scryptCost, (error, key) => (error ? reject(error) : resolve(key)))
  return `scrypt:${(await promise).toString('hex')}`
}
