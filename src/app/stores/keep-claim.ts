import type { Client } from '../../kubernetes/client/index.ts'
import { coerceError, type Log } from '../../kubernetes/controller/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { claimStores } from '../discovery/index.ts'

/** Other stores are those of the installation. */
export const otherStoresError = (dataDir: string, other: string, id: string) =>
  new AppStartError(
    'DataDirectory',
    `the states in ${dataDir} (${id}) are not those of this installation (${other}): engines would start from other states`,
    'choose the right directory with --data; --replace-stores makes these the states of the installation, after a restore',
  )

/** Whether these stores may serve. */
export type StoresClaim = { readonly isClaimed: boolean; notReady(): string[]; stop(): void }

export type StoresClaimOptions = {
  client: Client
  id: string
  dataDir: string
  replace: boolean
  log: Pick<Log, 'warn' | 'error'>
  /** Time between checks. Default 30,000. */
  checkMs?: number
  /** Time between attempts while the API server does not answer. Default 1,000. */
  retryMs?: number
}

/**
 * Claims the installation for these stores, and checks again at intervals: they serve only while the claim is theirs. If the API server
 * does not answer, it is retried in the background.
 * @throws {AppStartError} if other stores are those of the installation.
 */
export async function keepClaim(options: StoresClaimOptions): Promise<StoresClaim> {
  const { client, id, dataDir, log, checkMs = 30_000, retryMs = 1_000 } = options
  let { replace } = options
  let reason: string | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const attempt = async () => {
    let other: string | undefined
    try {
      other = await claimStores(client, id, { replace })
      replace = false
      const next = other === undefined ? undefined : otherStoresError(dataDir, other, id).message
      // The first attempt throws it.
      if (isStarted && next !== undefined && next !== reason) log.error({ id, other }, `requests are rejected: ${next}`)
      reason = next
    } catch (thrown) {
      // A claim that succeeded is valid until other stores are published.
      if (!isClaimed) reason = `it is not known whether these are the stores of the installation: ${coerceError(thrown).message}`
      log.warn({ err: coerceError(thrown) }, 'failed to check which stores are those of the installation, retrying')
      schedule(retryMs)
      return undefined
    }
    isClaimed = other === undefined
    schedule(checkMs)
    return other
  }
  const schedule = (ms: number) => {
    if (!isStopped) timer = setTimeout(() => void attempt(), ms).unref()
  }
  let isClaimed = false
  let isStarted = false
  const stop = () => {
    isStopped = true
    clearTimeout(timer)
  }
  const other = await attempt()
  isStarted = true
  if (other !== undefined) {
    stop()
    throw otherStoresError(dataDir, other, id)
  }
  return {
    get isClaimed() {
      return isClaimed
    },
    notReady: () => (reason === undefined ? [] : [reason]),
    stop,
  }
}
