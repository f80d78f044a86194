import type { RunStatus } from '../../api/index.ts'
import { isJsonObject } from '../../kubernetes/object/index.ts'
import type { ContentStore } from '../workspace/index.ts'

/** A package in the content store. */
export type PackageId = { readonly key: string; readonly checksum: string }
/** How a Run got a package that it has not downloaded itself. */
export type ProviderSource = 'Cached' | 'Waited'
export type RunProviders = NonNullable<RunStatus['providers']>

/** Counts the providers and plugins that a Run gets: what `status.providers` reports. */
export class ProviderUsage {
  readonly #counts = { cached: 0, waited: 0, downloaded: 0 }
  #downloadedBytes = 0
  #seconds = 0
  #downloadSeconds = 0

  /** `downloadSeconds`: of the Run that has downloaded it. */
  found(source: ProviderSource, downloadSeconds: number): void {
    this.#counts[source === 'Cached' ? 'cached' : 'waited']++
    this.#downloadSeconds += downloadSeconds
  }

  /** By this Run. `seconds`: 0 if it was not measured. */
  downloaded({ bytes, seconds = 0 }: { bytes: number; seconds?: number }): void {
    this.#counts.downloaded++
    this.#downloadedBytes += bytes
    this.#downloadSeconds += seconds
  }

  /** Adds the duration of `work`, which gets packages. */
  async measure<T>(work: () => Promise<T>): Promise<T> {
    const startedMs = performance.now()
    try {
      return await work()
    } finally {
      this.#seconds += (performance.now() - startedMs) / 1_000
    }
  }

  /** Undefined if the Run has got none. */
  get total(): RunProviders | undefined {
    const { cached, waited, downloaded } = this.#counts
    if (cached + waited + downloaded === 0) return undefined
    const [seconds, downloadSeconds] = [round(this.#seconds), round(this.#downloadSeconds)]
    return { cached, waited, downloaded, downloadedBytes: this.#downloadedBytes, seconds, downloadSeconds }
  }
}

const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000

const recordOf = ({ key, checksum }: PackageId) => `download of ${JSON.stringify([key, checksum])}`

/** Seconds that the download of a package took; 0 if no Run of the trust domain has measured it. Never fails: nothing depends on it. */
export async function readDownloadSeconds(store: Pick<ContentStore, 'readRecord'>, id: PackageId): Promise<number> {
  try {
    const record: unknown = JSON.parse((await store.readRecord(recordOf(id))) ?? 'null')
    const seconds = isJsonObject(record) ? record.seconds : undefined
    return typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0 ? seconds : 0
  } catch {
    return 0
  }
}

/** Never fails: see {@link readDownloadSeconds}. */
export async function writeDownloadSeconds(store: Pick<ContentStore, 'writeRecord'>, id: PackageId, seconds: number): Promise<void> {
  await store.writeRecord(recordOf(id), JSON.stringify({ seconds: round(seconds) })).catch(() => {})
}
