import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Client } from '../kubernetes/client/index.ts'
import { CliError, usageError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'
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
  if (option === '') throw usageError('--data must not be empty', 'name a directory')
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
  return localKubeconfigs(environment).find(exists)
}

/** Where the kubeconfig of a local server can be. */
function localKubeconfigs(environment: CliEnvironment): string[] {
  const { env, cwd } = environment
  const directories = [...(env.OARLOCK_DATA ? [] : [join(cwd, '.oarlock')]), dataDirectory(undefined, environment)]
  return [...new Set(directories)].map(directory => join(directory, 'kubeconfig'))
}

/** The error when {@link findKubeconfig} and the client found nothing. It lists the places that were searched. */
export function noKubeconfigError(environment = currentEnvironment()): CliError {
  const places = [...localKubeconfigs(environment), join(homedir(), '.kube', 'config')]
  return new CliError(
    `no kubeconfig found: KUBECONFIG is not set, there is no service account of a Pod, and none of these files exists: ${places.join(', ')}`,
    {
      exitCode: exitCodes.unreachable,
      hint: 'start a server with "oarlock up", choose its data directory with OARLOCK_DATA, or a kubeconfig with --kubeconfig',
    },
  )
}

/** A client for the server that the options select. The caller closes it. */
export async function connect(options: AccessOptions): Promise<Client> {
  const { context } = options
  // Loaded here: servers import this module for their data directory only.
  const [{ createClient }, { RoutedClient }] = await Promise.all([import('../kubernetes/client/index.ts'), import('./routed-client.ts')])
  const kubeconfig = findKubeconfig(options.kubeconfig)
  try {
    const client = await createClient({ kubeconfig, context, fieldManager: 'oarlock-cli', userAgent: 'oarlock-cli' })
    return new RoutedClient(client, { kubeconfig, context })
  } catch (error) {
    if (error instanceof TypeError && error.message.startsWith('no kubeconfig found')) throw noKubeconfigError()
    throw error
  }
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
