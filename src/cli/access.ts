import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Client } from '../kubernetes/client/index.ts'
import { usageError } from './cli-error.ts'
import { packageRoot } from './package-root.ts'

/** The options of every command that talks to an API server. */
export type AccessOptions = { kubeconfig?: string; context?: string; namespace?: string; allNamespaces?: boolean }

export type Surroundings = {
  env: Record<string, string | undefined>
  cwd: string
  checkout: string | undefined
  exists(path: string): boolean
}

export const here = (): Surroundings => ({
  env: process.env,
  cwd: process.cwd(),
  checkout: existsSync(join(packageRoot, 'src', 'cli')) ? packageRoot : undefined,
  exists: existsSync,
})

/**
 * The data directory of `oarlock up`: --data, OARLOCK_DATA, `.oarlock` in the checkout, else in the working directory.
 * @throws {CliError} usage, for an empty --data.
 */
export function dataDirectory(option: string | undefined, { env, cwd, checkout } = here()): string {
  // As from `--data "$UNSET"`: it would mean the working directory, and fill it.
  if (option === '') throw usageError('--data may not be empty: name a directory, or leave it out')
  return resolve(cwd, option ?? (env.OARLOCK_DATA || undefined) ?? join(checkout ?? cwd, '.oarlock'))
}

/**
 * The kubeconfig to use: --kubeconfig, KUBECONFIG (undefined is returned: the client reads it, several files included), that of
 * an all-in-one server's data directory if there is one, else undefined for the client's own search (a Pod, ~/.kube/config).
 */
export function findKubeconfig(option: string | undefined, surroundings = here()): string | undefined {
  const { env, cwd, exists } = surroundings
  if (option) return resolve(cwd, option)
  if (env.KUBECONFIG) return undefined
  const candidates = [...(env.OARLOCK_DATA ? [] : [join(cwd, '.oarlock')]), dataDirectory(undefined, surroundings)]
  return candidates.map(directory => join(directory, 'kubeconfig')).find(exists)
}

/** Connects as the options say. Close it at the end. */
export async function connect(options: AccessOptions): Promise<Client> {
  const { context } = options
  // Not by servers, which have this file for their data directory.
  const { createClient } = await import('../kubernetes/client/index.ts')
  return createClient({ kubeconfig: findKubeconfig(options.kubeconfig), context, fieldManager: 'oarlock-cli', userAgent: 'oarlock-cli' })
}

/** Runs `work` with a client that is closed afterwards. */
export async function withClient<T>(options: AccessOptions, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect(options)
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

/** The namespace for objects that name none. */
export const namespaceOf = (client: Client, options: AccessOptions) => options.namespace ?? client.defaultNamespace
