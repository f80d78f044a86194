import { isAbsolute, join } from 'node:path'
import { type ClusterAccess, type Credentials, type ExecPlugin, type Pem, parseServer } from './cluster-access.ts'

/** One kubeconfig file: its parsed YAML and the directory that its relative paths start from. */
export type KubeconfigFile = { path: string; directory: string; content: unknown }

type Fields = { [field: string]: unknown }
type KubeconfigEntry = { fields: Fields; file: KubeconfigFile }
type MergedKubeconfig = {
  clusters: Map<string, KubeconfigEntry>
  users: Map<string, KubeconfigEntry>
  contexts: Map<string, KubeconfigEntry>
  currentContext: string | undefined
}

/**
 * Resolves how to reach a cluster from one or more kubeconfig files, merged as in kubectl: the first file that defines a
 * cluster, user, context or current context wins.
 * @throws {TypeError} naming file and field for what is missing or invalid; never quotes a credential.
 */
export function resolveKubeconfig(files: readonly KubeconfigFile[], contextName?: string): ClusterAccess {
  const from = files.map(file => file.path).join(', ')
  const merged = merge(files)
  const name = contextName ?? merged.currentContext
  if (!name) {
    throw new TypeError(`kubeconfig ${from} has no current-context: set one with "kubectl config use-context" or name a context`)
  }
  const context = find(merged.contexts, 'context', name, from)
  const contextFields = section(context, 'context', `contexts[${name}]`)
  const clusterName = text(contextFields, 'cluster', `contexts[${name}].context`, context.file)
  if (!clusterName) throw new TypeError(`kubeconfig ${context.file.path}: contexts[${name}].context.cluster is missing`)
  const cluster = find(merged.clusters, 'cluster', clusterName, from)
  const userName = text(contextFields, 'user', `contexts[${name}].context`, context.file)
  const user = userName ? find(merged.users, 'user', userName, from) : undefined
  const access: ClusterAccess = {
    ...readCluster(cluster, clusterName),
    ...(user ? readUser(user, userName as string) : { credentials: { kind: 'none' } as const }),
    defaultNamespace: text(contextFields, 'namespace', `contexts[${name}].context`, context.file) || 'default',
    source: `context ${JSON.stringify(name)} of ${context.file.path}`,
  }
  return access
}

function merge(files: readonly KubeconfigFile[]): MergedKubeconfig {
  const merged: MergedKubeconfig = { clusters: new Map(), users: new Map(), contexts: new Map(), currentContext: undefined }
  for (const file of files) {
    if (file.content === null || file.content === undefined) continue
    if (!isFields(file.content)) throw new TypeError(`kubeconfig ${file.path} must be a YAML mapping, got ${kindOf(file.content)}`)
    for (const list of ['clusters', 'users', 'contexts'] as const) {
      const entries = file.content[list] ?? []
      if (!Array.isArray(entries)) throw new TypeError(`kubeconfig ${file.path}: ${list} must be a list, got ${kindOf(entries)}`)
      for (const fields of entries) {
        if (!isFields(fields) || typeof fields.name !== 'string') {
          throw new TypeError(`kubeconfig ${file.path}: every entry of ${list} must be a mapping with a name`)
        }
        if (!merged[list].has(fields.name)) merged[list].set(fields.name, { fields, file })
      }
    }
    const current = text(file.content, 'current-context', '', file)
    if (current && !merged.currentContext) merged.currentContext = current
  }
  return merged
}

function readCluster(entry: KubeconfigEntry, name: string) {
  const where = `clusters[${name}].cluster`
  const fields = section(entry, 'cluster', `clusters[${name}]`)
  const server = text(fields, 'server', where, entry.file)
  if (!server) throw new TypeError(`kubeconfig ${entry.file.path}: ${where}.server is missing`)
  return {
    server: parseServer(server, `kubeconfig ${entry.file.path}: ${where}.server`),
    ca: pem(fields, 'certificate-authority', where, entry.file),
    insecureSkipTlsVerify: fields['insecure-skip-tls-verify'] === true,
    tlsServerName: text(fields, 'tls-server-name', where, entry.file),
    proxyUrl: text(fields, 'proxy-url', where, entry.file),
  }
}

function readUser(entry: KubeconfigEntry, name: string) {
  const where = `users[${name}].user`
  const { file } = entry
  const fields = section(entry, 'user', `users[${name}]`)
  if (fields['auth-provider']) {
    throw new TypeError(
      `kubeconfig ${file.path}: ${where}.auth-provider was removed from Kubernetes in 1.26: use exec, a token or a certificate`,
    )
  }
  const user = text(fields, 'as', where, file)
  const groups = Array.isArray(fields['as-groups']) ? fields['as-groups'].map(String) : []
  const uid = text(fields, 'as-uid', where, file)
  return {
    credentials: readCredentials(fields, where, file),
    clientCertificate: pem(fields, 'client-certificate', where, file),
    clientKey: pem(fields, 'client-key', where, file),
    impersonate: user ? { user, groups, uid } : undefined,
  }
}

function readCredentials(fields: Fields, where: string, file: KubeconfigFile): Credentials {
  // As in client-go: a token file takes precedence over a token, because it is renewed.
  const tokenFile = text(fields, 'tokenFile', where, file)
  if (tokenFile) return { kind: 'token-file', path: resolve(tokenFile, file) }
  const token = text(fields, 'token', where, file)
  if (token) return { kind: 'token', token }
  const username = text(fields, 'username', where, file)
  if (username) return { kind: 'basic', username, password: text(fields, 'password', where, file) ?? '' }
  if (fields.exec) return { kind: 'exec', plugin: readExec(fields.exec, `${where}.exec`, file) }
  return { kind: 'none' }
}

const execVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

function readExec(value: unknown, where: string, file: KubeconfigFile): ExecPlugin {
  if (!isFields(value)) throw new TypeError(`kubeconfig ${file.path}: ${where} must be a mapping, got ${kindOf(value)}`)
  const command = text(value, 'command', where, file)
  if (!command) throw new TypeError(`kubeconfig ${file.path}: ${where}.command is missing`)
  const apiVersion = text(value, 'apiVersion', where, file) ?? ''
  if (!execVersions.includes(apiVersion)) {
    throw new TypeError(
      `kubeconfig ${file.path}: ${where}.apiVersion ${JSON.stringify(apiVersion)} must be one of ${execVersions.join(', ')}`,
    )
  }
  const args = Array.isArray(value.args) ? value.args.map(String) : []
  const env = Array.isArray(value.env)
    ? value.env.filter(isFields).map(({ name, value }) => ({ name: String(name), value: String(value) }))
    : []
  return {
    apiVersion,
    // A command with a slash is relative to the kubeconfig; a bare name is looked up in PATH.
    command: command.includes('/') ? resolve(command, file) : command,
    args,
    env,
    installHint: text(value, 'installHint', where, file),
    provideClusterInfo: value.provideClusterInfo === true,
  }
}

function pem(fields: Fields, name: string, where: string, file: KubeconfigFile): Pem | undefined {
  const data = text(fields, `${name}-data`, where, file)
  if (data) return { kind: 'text', text: Buffer.from(data, 'base64').toString('utf8') }
  const path = text(fields, name, where, file)
  return path ? { kind: 'file', path: resolve(path, file) } : undefined
}

function find(entries: Map<string, KubeconfigEntry>, what: string, name: string, from: string): KubeconfigEntry {
  const entry = entries.get(name)
  if (entry) return entry
  const available = [...entries.keys()].join(', ') || 'none'
  throw new TypeError(`kubeconfig ${from} has no ${what} ${JSON.stringify(name)}: available are ${available}`)
}

function section(entry: KubeconfigEntry, name: string, where: string): Fields {
  const value = entry.fields[name] ?? {}
  if (!isFields(value)) throw new TypeError(`kubeconfig ${entry.file.path}: ${where}.${name} must be a mapping, got ${kindOf(value)}`)
  return value
}

function text(fields: Fields, name: string, where: string, file: KubeconfigFile): string | undefined {
  const value = fields[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  // YAML parses a token that consists of digits as a number: report it without quoting what may be a secret.
  throw new TypeError(
    `kubeconfig ${file.path}: ${where ? `${where}.` : ''}${name} must be a string, got a ${kindOf(value)}: put it in quotes`,
  )
}

const resolve = (path: string, file: KubeconfigFile) => (isAbsolute(path) ? path : join(file.directory, path))
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
const kindOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value)
