import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

export type OarlockProcess = {
  readonly child: ChildProcess
  readonly dataDir: string
  readonly kubeconfig: string
  readonly client: Client
  /** Base URL of the console, metrics and states. */
  readonly httpUrl: string
  /** Reads metrics and queue at `httpUrl`. */
  readonly statusHeaders: { readonly authorization: string }
  /** Everything printed so far, stdout and stderr. */
  output(): string
  /** Sends SIGTERM, waits for the exit and returns its code. */
  stop(): Promise<number | null>
  /** Sends SIGKILL, as in a crash. */
  kill(): Promise<void>
}

/** A temporary data directory; remove it with {@link removeDirectory}. */
export const makeDataDir = (): string => mkdtempSync(join(tmpdir(), 'oarlock-test-'))
export const removeDirectory = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })

/** Starts `oarlock up` on free ports as a child process and waits until its API responds. With `openFiles`, it may open only as many. */
export async function startOarlock(
  dataDir: string,
  args: string[] = [],
  env: NodeJS.ProcessEnv = {},
  openFiles?: number,
): Promise<OarlockProcess> {
  const flags = ['--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0', ...args]
  return await startUp(launcher, dataDir, flags, env, openFiles)
}

/** {@link startOarlock} of another version: the program and all flags of it. */
export async function startUp(
  program: string,
  dataDir: string,
  flags: readonly string[],
  env: NodeJS.ProcessEnv = {},
  openFiles?: number,
): Promise<OarlockProcess> {
  const command = [process.execPath, program, 'up', ...flags]
  const [first = '', ...rest] = openFiles === undefined ? command : ['sh', '-c', `ulimit -n ${openFiles} && exec "$0" "$@"`, ...command]
  const child = spawn(first, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', ...env },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => (printed += text))
  const kubeconfig = join(dataDir, 'kubeconfig')
  const client = await whenReady(child, kubeconfig, () => printed)
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    }
    await client.close()
    return child.exitCode
  }
  return {
    child,
    dataDir,
    kubeconfig,
    client,
    httpUrl: healthUrl(printed) ?? '',
    statusHeaders: { authorization: `Bearer ${statusToken(dataDir)}` },
    output: () => printed,
    stop: () => end('SIGTERM'),
    kill: async () => {
      await end('SIGKILL')
    },
  }
}

/** Earlier versions have none. */
function statusToken(dataDir: string): string {
  const file = join(dataDir, 'status-token')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

async function whenReady(child: ChildProcess, kubeconfig: string, output: () => string): Promise<Client> {
  const deadline = Date.now() + 30_000
  for (;;) {
    if (child.exitCode !== null) throw new Error(`oarlock up exited with ${child.exitCode} before it was ready:\n${output()}`)
    const client = await createClient({ kubeconfig }).catch(() => undefined)
    // It is ready once it has printed its addresses; the API responds slightly earlier.
    if (client && healthUrl(output()) !== undefined && (await isResponding(client))) return client
    await client?.close()
    if (Date.now() > deadline) throw new Error(`oarlock up was not ready within 30 s:\n${output()}`)
    await sleep(50)
  }
}

/** Earlier versions name it by the status page that was there. */
const healthUrl = (output: string) => /^ *(?:health|status page) +(http:\S+)$/m.exec(output)?.[1]

/** A kubeconfig in a reused data directory may still have the port of the previous process. */
async function isResponding(client: Client): Promise<boolean> {
  try {
    await client.request({ method: 'GET', path: '/apis/oarlock.dev/v1alpha1/stacks', timeoutMs: 2_000 })
    return true
  } catch {
    return false
  }
}
