import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { eventually } from './eventually.ts'
import { killWithUs } from './kill-with-us.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

/** Roles of one test get different users if the test runs as root: then the system itself keeps each from the files of the others. */
const firstUid = 61_000
const isRoot = process.getuid?.() === 0

export type RoleProcess = {
  readonly child: ChildProcess
  readonly directory: string
  output(): string
  /** The value of a line that the role printed after its start, such as `API`. */
  printed(name: string): string
  /** Ends the process with a signal and returns its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Starts one role of an installation in an own directory, as an own user, and waits until it has printed `ready`. */
export class RoleProcesses {
  readonly #base: string
  readonly #roles: RoleProcess[] = []

  /** @param base a directory that only this test uses. */
  constructor(base: string) {
    this.#base = base
    // Other users must be able to pass through, not to list.
    chmodSync(base, 0o711)
  }

  directory(name: string): { path: string; uid: number | undefined } {
    const path = join(this.#base, name)
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const uid = isRoot ? firstUid + [...name].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 1_000, 7) : undefined
    if (uid !== undefined) chownSync(path, uid, uid)
    return { path, uid }
  }

  /** Writes a file that only the role can read, and returns its path. */
  file(role: string, name: string, content: string): string {
    const { path, uid } = this.directory(role)
    const file = join(path, name)
    writeFileSync(file, content, { mode: 0o600 })
    if (uid !== undefined) chownSync(file, uid, uid)
    return file
  }

  /** @param openFiles how many files the process may open. Default: as many as this one. */
  async start(name: string, args: readonly string[], ready: RegExp, env: NodeJS.ProcessEnv = {}, openFiles?: number): Promise<RoleProcess> {
    const { path, uid } = this.directory(name)
    const limit = openFiles === undefined ? '' : `ulimit -n ${openFiles} && `
    const child = killWithUs(
      spawn('sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, launcher, ...args], {
        cwd: path,
        stdio: ['ignore', 'pipe', 'pipe'],
        // The directory of each role is its home too: what it caches or creates there is its own.
        env: { PATH: process.env.PATH, HOME: path, TMPDIR: path, NO_COLOR: '1', NODE_COMPILE_CACHE: join(path, 'compile-cache'), ...env },
        ...(uid !== undefined && { uid, gid: uid }),
      }),
    )
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', chunk => (text += chunk))
    const role: RoleProcess = {
      child,
      directory: path,
      output: () => text,
      printed: line => new RegExp(`^ *${line} +(\\S+)$`, 'm').exec(text)?.[1] ?? '',
      stop: async (signal = 'SIGTERM') => {
        if (child.exitCode === null && child.signalCode === null) {
          const exited = once(child, 'exit')
          child.kill(signal)
          // A stopped process handles SIGTERM only after it was continued.
          child.kill('SIGCONT')
          await exited
        }
        return child.exitCode
      },
    }
    this.#roles.push(role)
    await eventually(
      () => {
        if (child.exitCode !== null) throw new Error(`oarlock ${args[0]} exited with ${child.exitCode} before it was ready:\n${text}`)
        return ready.test(text)
      },
      `oarlock ${args[0]} to be ready`,
      60_000,
    )
    return role
  }

  async stopAll(): Promise<void> {
    for (const role of this.#roles.toReversed()) await role.stop('SIGKILL')
  }
}

/** Starts an API server with Oarlock's kinds, and a client that is its administrator. */
export async function startApiRole(
  roles: RoleProcesses,
  listen = '127.0.0.1:0',
): Promise<{ api: RoleProcess; client: Client; ca: string; restart(): Promise<RoleProcess> }> {
  const start = async () => await roles.start('api', ['serve', '--data', '.', '--listen', listen], /kubeconfig/)
  const api = await start()
  const client = await createClient({ kubeconfig: join(api.directory, 'kubeconfig') })
  await installOarlock(client).catch(async (error: unknown) => {
    await client.close()
    throw error
  })
  return { api, client, ca: readFileSync(join(api.directory, 'pki', 'ca.crt'), 'utf8'), restart: start }
}

/** The arguments of a controller that finds Oarlock installed, on free ports. */
export const controllerArgs = ['controller', '--crds', 'check', '--health-address', '127.0.0.1:0', '--listen', '127.0.0.1:0']

/** A kubeconfig with the token of a ServiceAccount of `oarlock-system`, as a Pod of the role has. */
export async function accountKubeconfig(client: Client, account: string, caCertificate: string): Promise<string> {
  const response = await client.request({
    method: 'POST',
    path: `/api/v1/namespaces/oarlock-system/serviceaccounts/${account}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 7_200 } },
  })
  const { status } = (await response.json()) as { status: { token: string } }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'c', cluster: { server: client.server, 'certificate-authority-data': Buffer.from(caCertificate).toString('base64') } },
    ],
    users: [{ name: 'u', user: { token: status.token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  })
}
