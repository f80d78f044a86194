import { join } from 'node:path'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'

/** In a network of its own every port is free. */
const port = 7070
/** sun_path of unix(7), with its terminating zero. */
const maxSocketPathBytes = 107

/** Connects each client of the port to the socket. It prints a line when it listens, and ends with the sandbox. */
const relayProgram = `const { createServer, connect } = require('node:net')
const [port, path] = process.argv.slice(2)
createServer({ allowHalfOpen: true }, client => {
  const server = connect({ path, allowHalfOpen: true })
  client.on('error', () => server.destroy()).on('close', () => server.destroy())
  server.on('error', () => client.destroy()).on('close', () => client.destroy())
  client.pipe(server).pipe(client)
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\\n'))
`

/** $1 Node, $2 the relay, $3 the port, $4 the socket, then the program with its arguments, which replaces the shell: signals are for it. */
const startScript = `pipe="\${TMPDIR:-/tmp}/.oarlock-relay.$$"
mkfifo "$pipe" || exit 125
env -i "$1" --max-old-space-size=32 "$2" "$3" "$4" > "$pipe" 2>&1 < /dev/null &
read -r answer < "$pipe"
rm -f "$pipe"
[ "$answer" = listening ] || { echo "error: the relay to the state endpoint did not start: $answer" >&2; exit 125; }
shift 4
exec "$@"`

/** The programs of the Run have a loopback interface of their own, on which this process cannot listen. */
export function hasOwnLoopback({ spec: { isolation } }: Pick<EngineContext, 'spec'>): boolean {
  const { level = 'Process', network = 'Host' } = isolation ?? {}
  return level === 'Sandbox' && network !== 'Host'
}

export type LoopbackRelay = {
  /** Where this process listens. A Unix socket in a directory that the sandbox shows is reached from every network. */
  readonly socketPath: string
  /** What the program in the sandbox connects to. */
  readonly url: string
  /** The command that starts the relay in the sandbox, and then the program. */
  wrap(program: string, args: readonly string[]): { command: string; args: string[] }
}

/**
 * A relay from the sandbox's own loopback interface to this process. It is a program of Node, because that is what each worker has; the sandbox
 * shows nothing else of it than the binary. Each command of the CLI has one, which ends with it.
 * @throws {EngineError} InvalidSpec if the path of the Run's directory is too long for a socket.
 */
export async function createLoopbackRelay(context: EngineContext): Promise<LoopbackRelay> {
  const socketPath = join(context.inputs, 'state.sock')
  if (Buffer.byteLength(socketPath) > maxSocketPathBytes) {
    const message = `the path of the Run's state socket has more than ${maxSocketPathBytes} bytes: ${socketPath}; choose a shorter data directory for the worker`
    throw new EngineError('InvalidSpec', message, { retryable: false })
  }
  const relay = join(context.inputs, 'relay.cjs')
  await context.files.write(relay, relayProgram)
  const node = process.execPath
  context.showProgram(node)
  return {
    socketPath,
    url: `http://127.0.0.1:${port}`,
    wrap: (program, args) => ({
      command: '/bin/sh',
      args: ['-c', startScript, 'oarlock-pulumi', node, relay, `${port}`, socketPath, program, ...args],
    }),
  }
}
