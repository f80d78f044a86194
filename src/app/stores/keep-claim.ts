import { systemNamespace } from '../../api/index.ts'
import { type Client, systemClock } from '../../kubernetes/client/index.ts'
import { coerceError, LeaseHolder, type Log } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import type { HealthReason } from '../../kubernetes/util/index.ts'
import { AppStartError } from '../app-start-error.ts'
import { type ClaimingStores, claimRefusal, claimStores, readStoresClaim } from '../discovery/index.ts'
import { heldError, refusedError } from './claim-errors.ts'
import { formatHolder, newHolder, storesLease, storesLeaseName } from './stores-lease.ts'

/** Whether these stores may serve. Judged at the call, so it is correct immediately after the process was stopped for a while. */
export type KeptClaim = {
  readonly isClaimed: boolean
  notReady(): HealthReason[]
  /** Lets other stores of the installation start. Never rejects. */
  release(): Promise<void>
}

export type KeepClaimOptions = {
  client: Client
  stores: ClaimingStores & {
    /** Processes with the same one have never run at the same time (stores-lease.ts). */
    readonly lockId: string
  }
  dataDir: string
  replace: boolean
  log: Log
  /** Other stores are those of the installation now, or another process serves these: this one serves no longer. */
  onLost(error: AppStartError): void
  /** Default 15,000. */
  leaseDurationMs?: number
  /** Time between raises of the generation. Default 60,000: after a crash, a copy of the directory is recognized if it was made longer before. */
  raiseMs?: number
  /** Time between attempts while the API server does not answer. Default 1,000. */
  retryMs?: number
}

/** An API server that cannot be reached must not delay a shutdown. */
const releaseTimeoutMs = 2_000

/**
 * Claims the installation for these stores: of all processes only the holder of the Lease serves, and of all directories only the one
 * that was used last (`claimStores`). Waits while the Lease of a process that may still run has not expired. If the API server does not
 * answer, it is retried in the background.
 * @throws {AppStartError} if these are not the stores of the installation, or another process serves them.
 */
export async function keepClaim(options: KeepClaimOptions): Promise<KeptClaim> {
  const { client, stores, dataDir, log, leaseDurationMs = 15_000, raiseMs = 60_000, retryMs = 1_000 } = options
  let { replace } = options
  let isRaised = false
  let isStarted = false
  let reason: HealthReason | undefined
  let waitsFor: string | undefined
  const ended = new AbortController()
  const started = Promise.withResolvers<void>()

  const lose = (error: AppStartError) => {
    if (ended.signal.aborted) return
    isRaised = false
    reason = { reason: 'these stores may not serve', detail: error }
    ended.abort()
    if (!isStarted) return started.reject(error)
    log.error({}, `requests are rejected: ${error.message}`)
    options.onLost(error)
  }
  const onError = (thrown: unknown) => {
    // A race that was lost is no failure.
    if (isReason(thrown, 'Conflict', 'AlreadyExists')) return
    reason = { reason: 'it is not known whether these are the stores of the installation', detail: coerceError(thrown) }
    started.resolve()
  }
  const onHeld = (other: string, isAlive: boolean) => {
    if (waitsFor !== other) log.info({ holder: other }, 'the Lease of the stores is held by another process, waiting until it expires')
    waitsFor = other
    reason = { reason: 'another process holds the Lease of the stores', detail: formatHolder(other) }
    const url = async () => (await readStoresClaim(client, AbortSignal.timeout(releaseTimeoutMs))).url
    if (isAlive)
      void url().then(
        at => lose(heldError(other, at)),
        () => lose(heldError(other, undefined)),
      )
  }

  const renewDeadlineMs = Math.ceil((leaseDurationMs * 2) / 3)
  const holder = newHolder(stores.lockId)
  const lease = new LeaseHolder({
    ...{ leaseName: storesLeaseName, namespace: systemNamespace, identity: holder, log },
    ...{ leaseDurationMs, renewDeadlineMs, retryPeriodMs: Math.ceil(leaseDurationMs / 8) },
    store: storesLease({ client, holder, timeoutMs: renewDeadlineMs, onHeld, onError }),
  })

  /** Raises the generation until `signal` aborts. */
  const keepRaising = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      let delayMs = raiseMs
      try {
        const refusal = await claimStores(client, stores, { replace, signal })
        if (refusal) return lose(refusedError(dataDir, stores.id, refusal))
        if (signal.aborted) return
        replace = false
        isRaised = true
        reason = undefined
        started.resolve()
      } catch (thrown) {
        if (signal.aborted) return
        log.warn({ err: coerceError(thrown) }, 'failed to claim the installation for these stores, retrying')
        onError(thrown)
        delayMs = retryMs
      }
      await systemClock.sleep(delayMs, signal)
    }
  }

  try {
    // Before the Lease is acquired, which would keep the right stores waiting.
    const refusal = replace ? undefined : claimRefusal(stores, await readStoresClaim(client, AbortSignal.timeout(renewDeadlineMs)))
    if (refusal) throw refusedError(dataDir, stores.id, refusal)
  } catch (thrown) {
    if (thrown instanceof AppStartError) throw thrown
    log.warn({ err: coerceError(thrown) }, 'failed to read which stores are those of the installation, retrying')
    onError(thrown)
  }
  let raising = new AbortController()
  let raised = Promise.resolve()
  const running = lease.run(ended.signal, {
    onGained: () => {
      raising = new AbortController()
      raised = keepRaising(raising.signal)
    },
    onLost: async () => {
      const wasClaimed = isRaised && lease.isHeld
      isRaised = false
      raising.abort()
      await raised
      if (!ended.signal.aborted || !wasClaimed) return
      // A copy that was made while these stores served is older than their last states.
      await claimStores(client, stores, { signal: AbortSignal.timeout(releaseTimeoutMs) }).catch((thrown: unknown) =>
        log.warn({ err: coerceError(thrown) }, 'failed to raise the generation of the stores'),
      )
    },
  })
  const release = async () => {
    ended.abort()
    await running
  }
  try {
    await started.promise
  } catch (error) {
    await release()
    throw error
  }
  isStarted = true
  return {
    get isClaimed() {
      return isRaised && lease.isHeld
    },
    notReady: () => (isRaised && lease.isHeld ? [] : [reason ?? 'the Lease of the stores was not renewed in time']),
    release,
  }
}
