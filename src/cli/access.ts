import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Client } from '../kubernetes/client/index.ts'
import { usageError } from './cli-error.ts'
import { packageRoot } from './package-root.ts'

/** The options of every command that talks to an API server. */
export type AccessOptions = { kubeconfig?: string; context?: string; namespace?: string; allNamespaces?: boolean }

/** What the search for a data directory and a kubeconfig depends on. */
export type CliEnvironment = {
  env: Record<string, string | undefined>
  cwd: string
  checkout: string | undefined
  exists(path: string): boolean
}

export const currentEnvironment = (): CliEnvironment => ({
  env: process.env,
  cwd: process.cwd(),
  checkout: existsSync(join(packageRoot, 'src', 'cli')) ? packageRoot : undefined,
  exists: existsSync,
})

/**
 * The data directory of `oarlock up`: --data, OARLOCK_DATA, or `.oarlock` in the checkout, or else in the working directory.
 * @throws {CliError} usage, if --data is empty.
 */
export function dataDirectory(option: string | undefined, { env, cwd, checkout } = currentEnvironment()): string {
  // `--data "$UNSET"` would resolve to the working directory, and fill it.
  if (option === '') throw usageError('--data must not be empty', 'name a directory, or omit --data')
  return resolve(cwd, option ?? (env.OARLOCK_DATA || undefined) ?? join(checkout ?? cwd, '.oarlock'))
}

/**
 * The kubeconfig to use: --kubeconfig, or that of the data directory of a local server. Undefined leaves the search to the client:
 * when KUBECONFIG is set, which may list several files, and when there is no local server (a Pod, ~/.kube/config).
 */
export function findKubeconfig(option: string | undefined, environment = currentEnvironment()): string | undefined {
  const { env, cwd, exists } = environment
  if (option) return resolve(cwd, option)
  if (env.KUBECONFIG) return undefined
  const candidates = [...(env.OARLOCK_DATA ? [] : [join(cwd, '.oarlock')]), dataDirectory(undefined, environment)]
  return candidates.map(directory => join(directory, 'kubeconfig')).find(exists)
}

/** A client for the server that the options select. The caller closes it. */
export async function connect(options: AccessOptions): Promise<Client> {
  const { context } = options
  // Loaded here: servers import this module for their data directory only.
  const { createClient } = await import('../kubernetes/client/index.ts')
  return createClient({ kubeconfig: findKubeconfig(options.kubeconfig), context, fieldManager: 'oarlock-cli', userAgent: 'oarlock-cli' })
}

/** Calls `work` with a client that is closed afterwards. */
export async function withClient<T>(options: AccessOptions, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect(options)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

/** The namespace for objects without one. */
export const namespaceOf = (client: Client, options: AccessOptions) => options.namespace ?? client.defaultNamespace
