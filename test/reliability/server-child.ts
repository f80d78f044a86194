import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parse } from 'yaml'

const program = `
import { startServer } from ${JSON.stringify(new URL('../../src/kubernetes/server/index.ts', import.meta.url).href)}
const server = await startServer({ dataDir: process.argv[1], listen: { port: 0 } })
console.log(server.url)
process.once('SIGTERM', () => server.close().then(() => process.exit(0)))
`

/** The fields of an object, a list or a Status that these tests read. */
export type Item = { metadata: { name: string; resourceVersion: string; uid: string }; data?: { value?: string } }
export type CallResult = { code: number; body: Item & { items: Item[]; message?: string } }

/** An API server in a child process, which a test can kill, and a client for it. */
export type ServerChild = {
  readonly child: ChildProcess
  readonly url: string
  /** Rejects if the connection fails. */
  call(method: string, path: string, body?: unknown, type?: string): Promise<CallResult>
  /** The lines of a watch until the connection ends, cleanly or not. */
  watch(path: string): Promise<{ code: number; lines: AsyncIterable<string>; end(): void }>
  /** Sends SIGKILL and waits until the process has exited. */
  kill(): Promise<void>
  disconnect(): void
}

export function spawnServer(dataDir: string, env: NodeJS.ProcessEnv = {}, prefix: readonly string[] = []): ChildProcess {
  const [command = '', ...args] = [...prefix, process.execPath, '--input-type=module-typescript', '-e', program, dataDir]
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
}

/** @throws if the process exits before it listens; the message contains its stderr. */
export async function startServerChild(dataDir: string, env: NodeJS.ProcessEnv = {}, prefix: readonly string[] = []): Promise<ServerChild> {
  const child = spawnServer(dataDir, env, prefix)
  let stderrText = ''
  child.stderr!.setEncoding('utf8').on('data', text => {
    stderrText = (stderrText + text).slice(-4_000)
  })
  const ended = once(child, 'exit')
  const first = await Promise.race([once(createInterface(child.stdout!), 'line'), ended.then(() => undefined)])
  if (!first) throw new Error(`the server exited before it listened: ${stderrText}`)
  const url = first[0] as string
  const kubeconfig = parse(readFileSync(join(dataDir, 'kubeconfig'), 'utf8'))
  const ca = Buffer.from(kubeconfig.clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  const headers = { authorization: `Bearer ${kubeconfig.users[0].user.token}` }
  const agent = new Agent({ keepAlive: true, ca })
  const send = (method: string, path: string, text = '', type = 'application/json') =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = httpsRequest(url + path, {
        method,
        agent,
        headers: { ...headers, ...(text && { 'content-type': type, 'content-length': Buffer.byteLength(text) }) },
      })
      outgoing.on('response', resolve).on('error', reject).end(text)
    })
  return {
    child,
    url,
    async call(method, path, body, type) {
      const response = await send(method, path, body === undefined ? '' : JSON.stringify(body), type)
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += chunk
      if (!response.complete) throw new Error('the response is incomplete')
      return {
        code: response.statusCode!,
        body: JSON.parse(text.startsWith('{') ? text : JSON.stringify({ message: text })) as CallResult['body'],
      }
    },
    async watch(path) {
      const response = await send('GET', path)
      return { code: response.statusCode!, lines: linesOf(response), end: () => response.destroy() }
    },
    async kill() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await ended
      }
      agent.destroy()
    },
    disconnect: () => agent.destroy(),
  }
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop()!
      yield* lines
    }
  } catch {
    // A killed server breaks its streams; only complete lines count.
  }
}
