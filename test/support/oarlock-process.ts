import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
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
  /** Of the status page, metrics and state. */
  readonly httpUrl: string
  /** Everything it printed so far, stdout and stderr. */
  output(): string
  /** SIGTERM, waits for the end, returns the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL, as a crash. */
  kill(): Promise<void>
}

/** A data directory of its own; remove it with {@link removeDirectory}. */
export const makeDataDir = (): string => mkdtempSync(join(tmpdir(), 'oarlock-test-'))
export const removeDirectory = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })

/** Starts `oarlock up` on free ports in a process of its own and waits until its API answers. */
export async function startOarlock(dataDir: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<OarlockProcess> {
  const child = spawn(process.execPath, [launcher, 'up', '--data', dataDir, '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0', ...args], {
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
    httpUrl: addressOfPage(printed) ?? '',
    output: () => printed,
    stop: () => end('SIGTERM'),
    kill: async () => {
      await end('SIGKILL')
    },
  }
}

async function whenReady(child: ChildProcess, kubeconfig: string, output: () => string): Promise<Client> {
  const deadline = Date.now() + 30_000
  for (;;) {
    if (child.exitCode !== null) throw new Error(`oarlock up ended with ${child.exitCode} before it was ready:\n${output()}`)
    const client = await createClient({ kubeconfig }).catch(() => undefined)
    // It is up once it says so: the API answers a moment before.
    if (client && addressOfPage(output()) !== undefined && (await answers(client))) return client
    await client?.close()
    if (Date.now() > deadline) throw new Error(`oarlock up was not ready within 30 s:\n${output()}`)
    await sleep(50)
  }
}

const addressOfPage = (output: string) => /^ *dashboard +(http:\S+)$/m.exec(output)?.[1]

/** The kubeconfig of a data directory that was used before may still name the port of the run before. */
async function answers(client: Client): Promise<boolean> {
  try {
    await client.request({ method: 'GET', path: '/apis/oarlock.dev/v1alpha1/stacks', timeoutMs: 2_000 })
    return true
  } catch {
    return false
  }
}
