import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Starts `installer.testing.ts`; resolves when it has ended. */
export async function startInstaller(directory: string, digest: string, log: string, crashAfterMs?: number) {
  const args = [directory, digest, log, ...(crashAfterMs === undefined ? [] : [`${crashAfterMs}`])]
  const child = fork(join(import.meta.dirname, 'installer.testing.ts'), args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const messages: { did: 'found' | 'installed'; waits: number }[] = []
  child.on('message', message => void messages.push(message as (typeof messages)[number]))
  const [exitCode, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return { exitCode, signal, ...messages[0] }
}
