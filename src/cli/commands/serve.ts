import { parseAddress } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type ApiServer, startServer } from '../../kubernetes/server/index.ts'
import type { Log } from '../../kubernetes/util/index.ts'
import { dataDirectory } from '../access.ts'
import { usageError } from '../cli-error.ts'
import { note, outPaint, print } from '../console.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { endLeanStart } from '../lean-start.ts'
import { openLog } from '../open-log.ts'
import { packageVersion } from '../version.ts'

export type ServeOptions = { data?: string; listen: string; grace: string; log?: string; logLevel: string }

/** One Ctrl-C comes twice when npm, which has it from the terminal as we do, passes it on. */
const sameSignalMs = 500

/** `oarlock serve`: the API server alone, until a signal ends it. Returns the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const stop = listenForSignals()
  try {
    const dataDir = dataDirectory(options.data)
    const log = openLog(options, dataDir)
    const server = await start(options, dataDir, log.logger)
    endLeanStart()
    const paint = outPaint()
    const row = (name: string, value: string) => `  ${paint('dim', name.padEnd(11))} ${value}`
    print(`${paint('bold', `oarlock ${packageVersion()}`)} serves the API, with ${server.stats().objects} objects`)
    print(row('API', server.url))
    print(row('kubeconfig', server.kubeconfigPath))
    print(row('data', dataDir))
    await stop.requested
    await server.close({ graceMs: parseDuration(options.grace) })
    log.close()
    print('stopped')
    return exitCodes.done
  } finally {
    stop.end()
  }
}

async function start({ listen }: ServeOptions, dataDir: string, log: Log): Promise<ApiServer> {
  try {
    return await startServer({ dataDir, listen: parseAddress(listen), log })
  } catch (error) {
    if (error instanceof RangeError && error.message.startsWith('address ')) throw usageError(error.message, 'oarlock serve --help')
    throw dataError(error)
  }
}

/** First signal: stop in good order. Second: leave at once; what was acknowledged is on disk. */
function listenForSignals(): { requested: Promise<void>; end(): void } {
  const { promise: requested, resolve } = Promise.withResolvers<void>()
  let firstMs: number | undefined
  const handler = () => {
    const nowMs = performance.now()
    if (firstMs === undefined) {
      firstMs = nowMs
      note('stopping (again: at once)')
      resolve()
    } else if (nowMs - firstMs > sameSignalMs) process.exit(exitCodes.interrupted)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, handler)
  return {
    requested,
    end() {
      for (const signal of signals) process.off(signal, handler)
    },
  }
}
