import { spawn } from 'node:child_process'
import type { ClusterAccess, ExecPlugin } from './cluster-access.ts'

/** The output of a credential plugin. `expiresAtMs` is wall-clock time; undefined means for the lifetime of this process. */
export type ExecCredential = { token?: string; clientCertificate?: string; clientKey?: string; expiresAtMs?: number }

const defaultTimeoutMs = 60_000
/** Child processes of a killed plugin may keep its output open indefinitely. */
const outputAfterExitMs = 500
const outputLimitBytes = 1_048_576

/**
 * Runs the exec plugin of a kubeconfig without a terminal and parses the ExecCredential that it prints.
 * @throws {Error} naming the command that failed and a remedy; never quotes its standard output, which may be a token.
 */
export async function runExecPlugin(plugin: ExecPlugin, access: ClusterAccess, timeoutMs = defaultTimeoutMs): Promise<ExecCredential> {
  const startedMs = performance.now()
  const { stdout, stderr, code } = await run(plugin, access, timeoutMs)
  const name = [plugin.command, ...plugin.args.slice(0, 1)].join(' ')
  if (code === 'SIGKILL' && performance.now() - startedMs >= timeoutMs) {
    throw new Error(
      `credential plugin "${name}" of ${access.source} timed out after ${timeoutMs / 1_000} s: does it wait for input or a browser? run it in a terminal`,
    )
  }
  if (code !== 0) {
    throw new Error(
      `credential plugin "${name}" of ${access.source} exited with ${code}: ${stderr.trim().slice(0, 500) || 'it printed no error'}. run it in a terminal to see its prompts`,
    )
  }
  let output: unknown
  try {
    output = JSON.parse(stdout)
  } catch {
    throw new Error(
      `credential plugin "${name}" of ${access.source} must print an ExecCredential as JSON, got ${stdout.length} characters that are not JSON`,
    )
  }
  const { apiVersion, kind, status } = (output ?? {}) as { apiVersion?: string; kind?: string; status?: { [field: string]: unknown } }
  if (kind !== 'ExecCredential' || apiVersion !== plugin.apiVersion) {
    throw new Error(`credential plugin "${name}" printed ${apiVersion} ${kind}, must be ${plugin.apiVersion} ExecCredential`)
  }
  const text = (field: string) => (typeof status?.[field] === 'string' && status[field] !== '' ? (status[field] as string) : undefined)
  const credential: ExecCredential = {
    token: text('token'),
    clientCertificate: text('clientCertificateData'),
    clientKey: text('clientKeyData'),
    expiresAtMs: text('expirationTimestamp') ? Date.parse(text('expirationTimestamp') as string) : undefined,
  }
  if (!credential.token && !(credential.clientCertificate && credential.clientKey)) {
    throw new Error(`credential plugin "${name}" printed neither status.token nor status.clientCertificateData with clientKeyData`)
  }
  return credential
}

function run(
  plugin: ExecPlugin,
  access: ClusterAccess,
  timeoutMs: number,
): Promise<{ stdout: string; stderr: string; code: number | string }> {
  const info = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(plugin.provideClusterInfo && { cluster: clusterInfo(access) }) },
  }
  const env = { ...process.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  for (const { name, value } of plugin.env) Object.assign(env, { [name]: value })
  return new Promise((resolve, reject) => {
    const child = spawn(plugin.command, plugin.args, {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
    let size = 0
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size <= outputLimitBytes) chunks[name].push(chunk)
      })
    }
    child.on('error', error => {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      const hint = plugin.installHint ? `: ${plugin.installHint.trim()}` : ', install it or add it to PATH'
      reject(
        new Error(
          `credential plugin "${plugin.command}" of ${access.source} ${isMissing ? `was not found${hint}` : 'could not be started'}`,
          {
            cause: error,
          },
        ),
      )
    })
    child.on('exit', () => {
      setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
      }, outputAfterExitMs).unref()
    })
    child.on('close', (code, killedBy) => {
      const text = (name: 'stdout' | 'stderr') => Buffer.concat(chunks[name]).toString('utf8')
      resolve({ stdout: text('stdout'), stderr: text('stderr'), code: code ?? `${killedBy}` })
    })
  })
}

function clusterInfo(access: ClusterAccess) {
  return {
    server: access.server,
    ...(access.ca?.kind === 'text' && { 'certificate-authority-data': Buffer.from(access.ca.text).toString('base64') }),
    ...(access.insecureSkipTlsVerify && { 'insecure-skip-tls-verify': true }),
    ...(access.tlsServerName && { 'tls-server-name': access.tlsServerName }),
    ...(access.proxyUrl && { 'proxy-url': access.proxyUrl }),
  }
}
