import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { ApiServer } from '../../../src/kubernetes/server/index.ts'
import { killWithUs } from '../kill-with-us.ts'
import type { PartitionChildOptions } from './partition-child.ts'

/** What tests need of a partition's server, in this process or in its own. */
export type PartitionServer = Pick<ApiServer, 'url' | 'port' | 'caCertificate' | 'kubeconfigPath'> &
  Partial<Pick<ApiServer, 'mapChanged'>> & {
    close(options?: { graceMs?: number }): Promise<void>
  }

/** A partition's server in its own process, which can be paused and killed. */
export class PartitionProcess implements PartitionServer {
  readonly url: string
  readonly port: number
  readonly caCertificate: string
  readonly kubeconfigPath: string
  readonly #child: ReturnType<typeof spawn>

  private constructor(child: ReturnType<typeof spawn>, { url, port, caCertificate, kubeconfigPath }: Omit<PartitionServer, 'close'>) {
    this.#child = child
    this.url = url
    this.port = port
    this.caCertificate = caCertificate
    this.kubeconfigPath = kubeconfigPath
  }

  static async start(options: PartitionChildOptions): Promise<PartitionProcess> {
    const child = killWithUs(
      spawn(process.execPath, [join(import.meta.dirname, 'partition-child.ts'), JSON.stringify(options)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the partition ended with ${code} before it was ready`)))
    const ready = (async () => {
      let text = ''
      for await (const chunk of child.stdout) {
        text += String(chunk)
        if (text.includes('\n')) break
      }
      return text
    })()
    const text = await Promise.race([ready, ended])
    ended.catch(() => {})
    return new PartitionProcess(child, JSON.parse(text) as PartitionServer)
  }

  get pid(): number {
    return this.#child.pid as number
  }

  pause(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async close(): Promise<void> {
    this.resume()
    await this.#end('SIGTERM')
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill(signal)
    await ended
  }
}
