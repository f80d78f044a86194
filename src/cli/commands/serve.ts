import { resolve } from 'node:path'
import { DataInUseError, parseAddress, partitionIdentity, partitions, roles } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { dataDirectory } from '../access.ts'
import { usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { endLeanStart } from '../lean-start.ts'
import { type OpenedLog, openLog } from '../open-log.ts'
import { type AuditFlags, auditOptions } from '../options.ts'
import { reportReadiness } from '../report-readiness.ts'
import { onShutdownSignal } from '../shutdown-signals.ts'
import { startError } from '../start-error.ts'
import { note, outPaint, print } from '../terminal.ts'
import { packageVersion } from '../version.ts'

export type ServeOptions = {
  data?: string
  listen: string
  tlsSan: string[]
  grace: string
  log?: string
  logLevel: string
  /** True: with the default name. */
  home?: string | true
  partition?: string
  advertiseUrl?: string
  replaceData?: true
} & AuditFlags

type Started = {
  readonly server: { readonly url: string; readonly kubeconfigPath: string; stats(): { readonly objects: number } }
  /** Undefined: it is no partition. */
  readonly partition: string | undefined
  notReady(): readonly string[]
  /** Resolves with the reason if it must stop. */
  readonly rejected: Promise<Error>
  stop(options: { graceMs: number }): Promise<void>
}

/** `oarlock serve`: runs only the API server, with the rules for Oarlock's workers, until a signal ends it. Returns the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const isPartition = options.home !== undefined || options.partition !== undefined
  if (options.home !== undefined && options.partition !== undefined)
    throw usageError('--home and --partition cannot be given together', 'the home partition needs no configuration')
  if (options.advertiseUrl !== undefined && !isPartition)
    throw usageError('--advertise-url is only for partitions', 'give it with --home or --partition')
  if (options.replaceData && options.partition === undefined)
    throw usageError('--replace-data is only for partitions other than home', 'give it with --partition')
  const stopRequested = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const removeSignalHandlers = onShutdownSignal(count => {
    // Acknowledged writes are on disk, so a forced exit loses nothing.
    if (count > 1) process.exit(exitCodes.interrupted)
    note('shutting down (press Ctrl-C again to force)')
    stopping.abort()
    stopRequested.resolve()
  })
  try {
    const dataDir = dataDirectory(options.data)
    const log = openLog(options, dataDir, { held: true })
    const started = await start(options, dataDir, log, stopping.signal)
    if (!started) {
      log.close()
      print('stopped')
      return exitCodes.done
    }
    const { server, partition, notReady, rejected, stop } = started
    log.begin()
    endLeanStart()
    const paint = outPaint()
    const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(11))} ${value}`
    print(`${paint('bold', `oarlock ${packageVersion()}`)} is serving the API with ${server.stats().objects} objects`)
    print(row('API', server.url))
    print(row('kubeconfig', server.kubeconfigPath))
    print(row('data', dataDir))
    if (partition !== undefined) print(row('partition', partition))
    const stopReporting =
      partition === undefined
        ? () => {}
        : reportReadiness(
            { notReady, ready: () => (options.partition === undefined ? 'home of the other partitions' : 'what home has is copied') },
            print,
          )
    const rejection = await Promise.race([stopRequested.promise, rejected])
    stopReporting()
    await stop({ graceMs: parseDuration(options.grace) })
    if (rejection) log.logger.error({ err: rejection }, 'the server has stopped')
    log.close()
    if (rejection) throw startError(rejection, 'serve')
    print('stopped')
    return exitCodes.done
  } finally {
    removeSignalHandlers()
  }
}

/** @returns undefined if `signal` ended the wait for home. */
async function start(options: ServeOptions, dataDir: string, log: OpenedLog, signal: AbortSignal): Promise<Started | undefined> {
  try {
    const { listen, tlsSan: names, advertiseUrl, home, partition } = options
    const server = { dataDir, listen: parseAddress(listen), names, audit: auditOptions(options, dataDir), log: log.logger }
    if (home === undefined && partition === undefined) {
      const { requireNoPartition } = await partitionIdentity()
      requireNoPartition(dataDir)
      const { startApiServer } = await roles.apiServer()
      const started = await startApiServer(server)
      const stop: Started['stop'] = stopOptions => started.server.close(stopOptions)
      return { server: started.server, partition: undefined, notReady: () => [], rejected: new Promise(() => {}), stop }
    }
    const [{ readConfiguration }, { startHome }, { startPartition }] = await Promise.all([partitions(), roles.home(), roles.partition()])
    const started =
      partition === undefined
        ? await startHome({ ...server, advertiseUrl, name: home === true || home === undefined ? 'home' : home })
        : await startPartition({
            ...{ ...server, advertiseUrl, replaceData: options.replaceData, signal },
            configuration: readConfiguration(resolve(partition), 'PartitionConfiguration'),
            onWaiting(reason) {
              log.begin()
              print(`waiting: ${reason}`)
            },
          })
    const { name, number } = started.identity
    return { ...started, partition: `${name}, number ${number}`, stop: stopOptions => started.stop(stopOptions) }
  } catch (error) {
    if (signal.aborted) return undefined
    if (!(error instanceof DataInUseError)) log.begin()
    throw startError(error, 'serve')
  }
}
