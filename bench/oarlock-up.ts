import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, createClient } from '../src/kubernetes/client/index.ts'
import { cpuSecondsOf, rssMbOf } from './server-process.ts'

export type Up = {
  startedAtMs: number
  pid: number
  client: Client
  rssMb(): number
  cpuSeconds(): number
  stop(): Promise<void>
  kill(): Promise<void>
}

/** Starts `oarlock up` on free ports in its own process; resolves when its API responds. Times are measured from before the spawn. */
export async function up(dataDir: string, args: string[] = [], env: NodeJS.ProcessEnv = process.env): Promise<Up> {
  const startedAtMs = performance.now()
  // The shell script, because it sets the environment and then becomes Node.
  const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock')
  const child = spawn(launcher, ['up', '--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  })
  const pid = child.pid as number
  // A bench that fails or is interrupted leaves nothing behind.
  const endWithUs = () => child.kill('SIGTERM')
  process.once('exit', endWithUs)
  child.once('exit', () => process.off('exit', endWithUs))
  const kubeconfig = join(dataDir, 'kubeconfig')
  let client: Client | undefined
  while (!client) {
    if (child.exitCode !== null) throw new Error(`oarlock up exited with code ${child.exitCode}`)
    await sleep(10)
    if (!existsSync(kubeconfig)) continue
    const candidate = await createClient({ kubeconfig }).catch(() => undefined)
    const answer = await candidate?.request({ method: 'GET', path: '/apis/oarlock.dev/v1alpha1/stacks' }).catch(() => undefined)
    if (answer) client = candidate
    else await candidate?.close()
  }
  const ready = client
  return {
    startedAtMs,
    pid,
    client: ready,
    rssMb: () => rssMbOf(pid),
    cpuSeconds: () => cpuSecondsOf(pid),
    kill: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      await ready.close()
    },
    stop: async () => {
      await ready.close()
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
