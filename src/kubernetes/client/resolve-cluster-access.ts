import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { escapeHidden, parseUntrustedYaml } from '../util/index.ts'
import { type ClusterAccess, type Credentials, type Pem, parseServer } from './cluster-access.ts'
import { type KubeconfigFile, resolveKubeconfig } from './kubeconfig.ts'
import { allowedSubjectName, isSubjectName } from './subject-name.ts'

/** A cluster given directly instead of by a kubeconfig. Certificates and keys are PEM text or paths of PEM files. */
export type ClusterOptions = {
  server: string
  caCertificate?: string | undefined
  /** A function is called for every request: for a short-lived token that is renewed elsewhere. */
  token?: string | (() => string) | undefined
  tokenFile?: string | undefined
  clientCertificate?: string | undefined
  clientKey?: string | undefined
  insecureSkipTlsVerify?: boolean | undefined
  tlsServerName?: string | undefined
  /** Namespace of requests that have none; default `default`. */
  namespace?: string | undefined
}

export type AccessOptions = {
  kubeconfig?: string | undefined
  /** Rejects a `kubeconfig` that runs a program or reads a file, because another user wrote it. */
  selfContained?: boolean | undefined
  context?: string | undefined
  cluster?: ClusterOptions | undefined
  /** Connects as the holder of this token, in place of the credentials that are found. */
  bearerToken?: string | undefined
  /** Connects as this user with these groups, whom the credentials must be allowed to impersonate. Replaces a user of the kubeconfig. */
  impersonate?: { readonly user: string; readonly groups: readonly string[] } | undefined
}

/** Where to search; tests pass their own. */
export type AccessEnvironment = { env: { [name: string]: string | undefined }; home: string; serviceAccountDirectory: string }

const processEnvironment = (): AccessEnvironment => ({
  env: process.env,
  home: homedir(),
  serviceAccountDirectory: '/var/run/secrets/kubernetes.io/serviceaccount',
})

/**
 * Resolves the cluster to connect to: `cluster`, then the `kubeconfig` file, then the files of KUBECONFIG, then the service
 * account of the Pod, then `~/.kube/config`.
 * @throws {TypeError} listing the places that were searched.
 */
export async function resolveClusterAccess(
  options: AccessOptions,
  environment: AccessEnvironment = processEnvironment(),
): Promise<ClusterAccess> {
  const { bearerToken, impersonate } = options
  const { clientCertificate, clientKey, impersonate: configured, ...found } = await findClusterAccess(options, environment)
  if (bearerToken !== undefined) return { ...found, credentials: { kind: 'token', token: bearerToken } }
  const user = impersonate ? { user: impersonate.user, groups: [...impersonate.groups] } : configured
  for (const name of [user?.user ?? '', ...(user?.groups ?? [])])
    if (!isSubjectName(name))
      throw new TypeError(`${escapeHidden(JSON.stringify(name.slice(0, 80)))} cannot be impersonated: use ${allowedSubjectName}`)
  return { ...found, clientCertificate, clientKey, impersonate: user }
}

async function findClusterAccess(options: AccessOptions, environment: AccessEnvironment): Promise<ClusterAccess> {
  const { env, home } = environment
  if (options.cluster) return fromOptions(options.cluster)
  if (options.kubeconfig) {
    const access = resolveKubeconfig([await readKubeconfig(options.kubeconfig)], options.context)
    if (options.selfContained) requireSelfContained(access)
    return access
  }
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter(path => path !== '')
  if (listed.length > 0) {
    // kubectl skips files that do not exist, so that one KUBECONFIG works on several machines.
    const present = listed.filter(path => existsSync(path))
    if (present.length === 0) throw new TypeError(`KUBECONFIG lists ${listed.join(', ')}, but none of these files exists`)
    return resolveKubeconfig(await Promise.all(present.map(readKubeconfig)), options.context)
  }
  if (isInPod(environment)) return await inCluster(environment)
  const standard = join(home, '.kube', 'config')
  if (existsSync(standard)) return resolveKubeconfig([await readKubeconfig(standard)], options.context)
  throw new TypeError(`no kubeconfig found: KUBECONFIG is not set, there is no service account of a Pod, and ${standard} does not exist`)
}

/** Whether this process runs in a Pod with the token of a service account, by which {@link resolveClusterAccess} finds its cluster. */
export const isInPod = ({ env, serviceAccountDirectory }: AccessEnvironment = processEnvironment()): boolean =>
  Boolean(env.KUBERNETES_SERVICE_HOST) && existsSync(join(serviceAccountDirectory, 'token'))

function requireSelfContained({ credentials, ca, clientCertificate, clientKey }: ClusterAccess): void {
  if (credentials.kind === 'exec')
    throw new TypeError('this kubeconfig may not run programs: replace exec by a token or a client certificate')
  if (credentials.kind === 'token-file') throw new TypeError('this kubeconfig may not read files: replace tokenFile by token')
  for (const [name, pem] of Object.entries({
    'certificate-authority': ca,
    'client-certificate': clientCertificate,
    'client-key': clientKey,
  })) {
    if (pem?.kind === 'file') throw new TypeError(`this kubeconfig may not read files: replace ${name} by ${name}-data`)
  }
}

async function readKubeconfig(path: string): Promise<KubeconfigFile> {
  let source: string
  try {
    source = await readFile(path, 'utf8')
  } catch (error) {
    throw new TypeError(`cannot read kubeconfig ${path} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`, { cause: error })
  }
  try {
    return { path, directory: dirname(resolve(path)), content: parseUntrustedYaml(source) as KubeconfigFile['content'] }
  } catch (error) {
    throw new TypeError(`kubeconfig ${path} is not valid YAML: ${(error as Error).message}`)
  }
}

async function inCluster({ env, serviceAccountDirectory }: AccessEnvironment): Promise<ClusterAccess> {
  const host = env.KUBERNETES_SERVICE_HOST as string
  const namespace = await readFile(join(serviceAccountDirectory, 'namespace'), 'utf8').catch(() => 'default')
  return {
    server: parseServer(
      `https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT ?? '443'}`,
      'KUBERNETES_SERVICE_HOST',
    ),
    defaultNamespace: namespace.trim() || 'default',
    credentials: { kind: 'token-file', path: join(serviceAccountDirectory, 'token') },
    ca: { kind: 'file', path: join(serviceAccountDirectory, 'ca.crt') },
    insecureSkipTlsVerify: false,
    source: `the service account in ${serviceAccountDirectory}`,
  }
}

function fromOptions(options: ClusterOptions): ClusterAccess {
  const { token, tokenFile } = options
  return {
    server: parseServer(options.server, 'cluster.server'),
    defaultNamespace: options.namespace ?? 'default',
    credentials: tokenFile ? { kind: 'token-file', path: tokenFile } : tokenOf(token),
    ca: textOrFile(options.caCertificate),
    clientCertificate: textOrFile(options.clientCertificate),
    clientKey: textOrFile(options.clientKey),
    insecureSkipTlsVerify: options.insecureSkipTlsVerify ?? false,
    tlsServerName: options.tlsServerName,
    source: 'the options of createClient',
  }
}

function tokenOf(token: ClusterOptions['token']): Credentials {
  if (typeof token === 'function') return { kind: 'dynamic-token', get: token }
  return token ? { kind: 'token', token } : { kind: 'none' }
}

function textOrFile(value: string | undefined): Pem | undefined {
  if (value === undefined) return undefined
  return value.includes('-----BEGIN') ? { kind: 'text', text: value } : { kind: 'file', path: value }
}
