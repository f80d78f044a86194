import { execFile } from 'node:child_process'
import { delimiter, isAbsolute, join } from 'node:path'
import { type IsolationLevel, isolationLevels, type Network, networks } from '../../../api/index.ts'
import { isExecutable } from '../process/index.ts'
import { probeArguments, type Sandbox } from './sandbox.ts'
import { findSandboxAccount } from './sandbox-account.ts'
import { privateNetworkProblem } from './sandbox-network.ts'
import { seccompArchitectures } from './seccomp.ts'

/** Whether this worker supports a level of isolation; if not, the reason and what to do. */
export type IsolationProbe = { available: true; sandbox?: Sandbox } | { available: false; reason: string }

const probes = new Map<string, Promise<IsolationProbe>>()

/**
 * Whether `level` is available on this worker. For Sandbox, bubblewrap is executed once: it may be installed while user namespaces are
 * forbidden. Pod is available when OARLOCK_ISOLATION=Pod, which the template of a Pod with one Run sets.
 */
export function probeIsolation(
  level: IsolationLevel,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<IsolationProbe> {
  const key = `${level}:${env.OARLOCK_ISOLATION ?? ''}:${env.OARLOCK_BWRAP_PATH ?? ''}:${env.PATH ?? ''}`
  const known = probes.get(key) ?? probe(level, env)
  probes.set(key, known)
  return known
}

/** The levels available on this worker, from weak to strong. */
export async function availableIsolationLevels(env: Readonly<Record<string, string | undefined>> = process.env): Promise<IsolationLevel[]> {
  const found = await Promise.all(isolationLevels.map(async level => ({ level, ...(await probeIsolation(level, env)) })))
  return found.flatMap(({ level, available }) => (available ? [level] : []))
}

/** The networks that sandboxes on this worker can have; undefined if it has no sandboxes. */
export async function availableNetworks(env: Readonly<Record<string, string | undefined>> = process.env): Promise<Network[] | undefined> {
  const found = await probeIsolation('Sandbox', env)
  if (!found.available) return undefined
  const hasPrivate = privateNetworkProblem(found.sandbox?.slirp4netns) === undefined
  return networks.filter(network => network !== 'Private' || hasPrivate)
}

async function probe(level: IsolationLevel, env: Readonly<Record<string, string | undefined>>): Promise<IsolationProbe> {
  if (level === 'Process') return { available: true }
  if (level === 'Pod') {
    if (env.OARLOCK_ISOLATION === 'Pod') return { available: true }
    return { available: false, reason: 'this worker is not a Pod with one Run; use a WorkerPool of mode Pod' }
  }
  if (process.platform !== 'linux') return { available: false, reason: `bubblewrap needs Linux, this is ${process.platform}` }
  if (!seccompArchitectures.includes(process.arch)) {
    const supported = seccompArchitectures.join(', ')
    return { available: false, reason: `the seccomp filter supports ${supported}, this machine is ${process.arch}` }
  }
  const bwrap = findBwrap(env)
  if (bwrap === undefined) {
    const where = env.OARLOCK_BWRAP_PATH ? `OARLOCK_BWRAP_PATH=${env.OARLOCK_BWRAP_PATH}` : 'PATH'
    return { available: false, reason: `bubblewrap (bwrap) was not found in ${where}; install it: apt-get install bubblewrap` }
  }
  let sandbox: Sandbox = { bwrap, slirp4netns: findInPath('slirp4netns', env) }
  try {
    if (process.getuid?.() === 0) sandbox = { ...sandbox, account: findSandboxAccount() }
  } catch (error) {
    return { available: false, reason: (error as Error).message }
  }
  const failure = await trySandbox(sandbox)
  return failure === undefined ? { available: true, sandbox } : { available: false, reason: `bubblewrap does not work here: ${failure}` }
}

function findBwrap(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const path = env.OARLOCK_BWRAP_PATH
  return path ? (isExecutable(path) ? path : undefined) : findInPath('bwrap', env)
}

function findInPath(name: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const directories = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
  return directories.map(directory => join(directory, name)).find(isExecutable)
}

/** The error of bubblewrap when it cannot create a sandbox with the namespaces and ids that every Run needs; undefined when it can. */
async function trySandbox(sandbox: Sandbox): Promise<string | undefined> {
  return await new Promise(resolve => {
    execFile(sandbox.bwrap, probeArguments(sandbox), { timeout: 10_000, env: {} }, (error, _, stderr) =>
      resolve(error ? stderr.trim().slice(0, 300) || error.message : undefined),
    )
  })
}
