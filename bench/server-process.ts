import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export type ServerProcess = { pid: number; kubeconfigPath: string; rssMb(): number; cpuSeconds(): number; stop(): Promise<void> }

/** Resident memory of a process in MB (10^6 bytes), from /proc. */
export const rssMbOf = (pid: number): number => memoryMbOf(pid, 'VmRSS')

/** Of the resident memory, what is not a mapped file: processes share the pages of Node's program. */
export const privateMbOf = (pid: number): number => memoryMbOf(pid, 'RssAnon')

function memoryMbOf(pid: number, line: string): number {
  const kib = new RegExp(`^${line}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kib) * 1024) / 1e6
}

/** CPU seconds a process has used so far, user and system, from /proc (100 ticks a second on Linux). */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Starts the embedded server alone in a process of its own. */
export async function startServerProcess(dataDir: string): Promise<ServerProcess> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'serve.ts'), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: 'node_modules/.cache/node' },
  })
  const pid = child.pid as number
  const [line] = (await Promise.race([
    once(child.stdout.setEncoding('utf8'), 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${code} before it was ready`))),
  ])) as [string]
  return {
    pid,
    kubeconfigPath: line.trim(),
    rssMb: () => rssMbOf(pid),
    cpuSeconds: () => cpuSecondsOf(pid),
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}
