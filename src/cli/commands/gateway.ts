import { resolve } from 'node:path'
import { parseAddress, partitions, roles } from '../../app/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { endLeanStart } from '../lean-start.ts'
import { openLog } from '../open-log.ts'
import { reportReadiness } from '../report-readiness.ts'
import { onShutdownSignal } from '../shutdown-signals.ts'
import { startError } from '../start-error.ts'
import { note, outPaint, print } from '../terminal.ts'
import { packageVersion } from '../version.ts'

export type GatewayOptions = {
  config: string
  listen: string
  tenantRequests: number
  userRequests: number
  tenantWatches: number
  userWatches: number
  log: string
  logLevel: string
}

/** What requests leave behind is collected three times less often than with the default, and a collection takes no longer: what is in progress is little. */
const maxYoungBytes = 48 * 1024 * 1024

/** `oarlock gateway`: serves the API of all partitions until a signal ends it. Returns the exit code. */
export async function gateway(options: GatewayOptions): Promise<number> {
  const stopRequested = Promise.withResolvers<void>()
  const removeSignalHandlers = onShutdownSignal(count => {
    if (count > 1) process.exit(exitCodes.interrupted)
    note('shutting down (press Ctrl-C again to force)')
    stopRequested.resolve()
  })
  const { logger, close } = openLog(options, '.')
  try {
    const [{ readConfiguration }, { startGateway }] = await Promise.all([partitions(), roles.gateway()])
    const configuration = readConfiguration(resolve(options.config), 'GatewayConfiguration')
    const { tenantRequests, userRequests, tenantWatches, userWatches } = options
    const limits = {
      ...{ requestsPerTenant: tenantRequests, requestsPerUser: userRequests },
      ...{ watchesPerTenant: tenantWatches, watchesPerUser: userWatches },
    }
    const listen = parseAddress(options.listen)
    const { url, notReady, stop } = await startGateway({ configuration, listen, limits, log: logger })
    endLeanStart({ maxYoungBytes })
    const paint = outPaint()
    print(`${paint('bold', `oarlock ${packageVersion()}`)} gateway`)
    for (const [name, value] of [
      ['API', url],
      ['home', configuration.home.server],
    ] as const)
      print(`  ${paint('dim', name.padEnd(11))} ${value}`)
    const stopReporting = reportReadiness({ notReady, ready: () => 'serving all partitions' }, print)
    await stopRequested.promise
    stopReporting()
    await stop()
    print('stopped')
    return exitCodes.done
  } catch (error) {
    throw startError(error, 'gateway')
  } finally {
    close()
    removeSignalHandlers()
  }
}
