import { DataInUseError, parseAddress, roles } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import type { ApiServer } from '../../kubernetes/server/index.ts'
import { dataDirectory } from '../access.ts'
import { note, outPaint, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { endLeanStart } from '../lean-start.ts'
import { type OpenedLog, openLog } from '../open-log.ts'
import { type AuditFlags, auditOptions } from '../options.ts'
import { onShutdownSignal } from '../shutdown-signals.ts'
import { startError } from '../start-error.ts'
import { packageVersion } from '../version.ts'

export type ServeOptions = { data?: string; listen: string; tlsSan: string[]; grace: string; log?: string; logLevel: string } & AuditFlags

/** `oarlock serve`: runs only the API server, with the rules for Oarlock's workers, until a signal ends it. Returns the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const stopRequested = Promise.withResolvers<void>()
  const removeSignalHandlers = onShutdownSignal(count => {
    // Acknowledged writes are on disk, so a forced exit loses nothing.
    if (count > 1) process.exit(exitCodes.interrupted)
    note('shutting down (press Ctrl-C again to force)')
    stopRequested.resolve()
  })
  try {
    const dataDir = dataDirectory(options.data)
    const log = openLog(options, dataDir, { held: true })
    const server = await start(options, dataDir, log)
    log.begin()
    endLeanStart()
    const paint = outPaint()
    const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(11))} ${value}`
    print(`${paint('bold', `oarlock ${packageVersion()}`)} is serving the API with ${server.stats().objects} objects`)
    print(row('API', server.url))
    print(row('kubeconfig', server.kubeconfigPath))
    print(row('data', dataDir))
    await stopRequested.promise
    await server.close({ graceMs: parseDuration(options.grace) })
    log.close()
    print('stopped')
    return exitCodes.done
  } finally {
    removeSignalHandlers()
  }
}

async function start(options: ServeOptions, dataDir: string, log: OpenedLog): Promise<ApiServer> {
  try {
    const { startApiServer } = await roles.apiServer()
    const { listen, tlsSan: names } = options
    const { server } = await startApiServer({
      dataDir,
      listen: parseAddress(listen),
      names,
      audit: auditOptions(options, dataDir),
      log: log.logger,
    })
    return server
  } catch (error) {
    if (!(error instanceof DataInUseError)) log.begin()
    throw startError(error, 'serve')
  }
}
