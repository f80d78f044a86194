import { type AccessOptions, type Client, createClient } from '../kubernetes/client/index.ts'
import { parseDuration } from '../kubernetes/object/index.ts'
import type { Log } from '../kubernetes/util/index.ts'
import { dataDirectory } from './access.ts'
import { note, outPaint, print } from './console.ts'
import { exitCodes } from './exit-codes.ts'
import { openLog } from './open-log.ts'
import { onShutdownSignal } from './shutdown-signals.ts'
import { startError } from './start-error.ts'
import { packageVersion } from './version.ts'

export type RoleOptions = { kubeconfig?: string; context?: string; data: string; log?: string; logLevel: string; grace: string }

export type RoleContext = {
  client: Client
  access: AccessOptions
  log: Log
  /** Absolute. */
  dataDir: string
  fail(reason: string): void
}
export type StartedRole = {
  /** Name and value of each line that is printed after the start. */
  rows: readonly (readonly [name: string, value: string])[]
  stop(options: { graceMs: number }): Promise<void>
  /** Ends the wait for work in progress during `stop`. Default: a second signal ends the process immediately. */
  interrupt?(): void
}

/**
 * Runs one role until a signal ends it, or until it fails. A second signal interrupts work in progress, or ends the process immediately.
 * @returns the exit code.
 */
export async function runRole(
  command: string,
  options: RoleOptions,
  what: string,
  start: (context: RoleContext) => Promise<StartedRole>,
): Promise<number> {
  const dataDir = dataDirectory(options.data)
  const ended = Promise.withResolvers<number>()
  const removeSignalHandlers = onShutdownSignal(count => {
    const interrupt = role?.interrupt
    if (count > 2 || (count === 2 && !interrupt)) process.exit(exitCodes.interrupted)
    note(`shutting down (press Ctrl-C again to ${interrupt && count === 1 ? 'interrupt Runs' : 'force'})`)
    if (count === 2) interrupt?.()
    ended.resolve(exitCodes.done)
  })
  const { logger, close } = openLog(options, dataDir)
  const access = { kubeconfig: options.kubeconfig, context: options.context }
  let client: Client | undefined
  let role: StartedRole | undefined
  try {
    // Not the kubeconfig of a local server, which commands find: a role gets the one that was made for it.
    client = await createClient({ ...access, userAgent: `oarlock-${command}`, fieldManager: 'oarlock' })
    const fail = (reason: string) => {
      note(`oarlock ${command}: ${reason}`)
      ended.resolve(exitCodes.failed)
    }
    role = await start({ client, access, log: logger, dataDir, fail }).catch((error: unknown) => {
      throw startError(error, command)
    })
    const paint = outPaint()
    print(`${paint('bold', `oarlock ${packageVersion()}`)} ${what}`)
    for (const [name, value] of role.rows) print(`  ${paint('dim', name.padEnd(11))} ${value}`)
    const exitCode = await ended.promise
    await role.stop({ graceMs: parseDuration(options.grace) })
    print('stopped')
    return exitCode
  } finally {
    removeSignalHandlers()
    await client?.close()
    close()
  }
}
