/**
 * Lists in a process of their own while another connection probes with gets: reads one `ListOrder` as JSON from argv[2],
 * prints one `ListReport`.
 */
import { collection } from './generator.ts'
import { type Endpoint, RawConnection } from './raw-connection.ts'

export type ListOrder = { endpoint: Endpoint; namespace: string /** 0: whole. */; limit: number; times: number; probe: string }
export type ListReport = { ms: number; firstByteMs: number; pauseMs: number; bytes: number; pages: number }

async function main({ endpoint, namespace, limit, times, probe }: ListOrder): Promise<ListReport> {
  const connection = await RawConnection.open(endpoint)
  const prober = await RawConnection.open(endpoint)
  const path = collection(namespace)
  const reports: ListReport[] = []
  for (let i = 0; i < times; i++) {
    let isDone = false
    let pauseMs = 0
    const probing = (async () => {
      while (!isDone) {
        const beginMs = performance.now()
        await prober.request('GET', `${path}/${probe}`)
        pauseMs = Math.max(pauseMs, performance.now() - beginMs)
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    })()
    const startedMs = performance.now()
    let bytes = 0
    let pages = 0
    let firstByteMs = 0
    if (limit === 0) {
      // The reader runs on the same cores and must cost little: processing 100 MB is not the server's work.
      const counted = await connection.count(path)
      if (counted.status !== 200) throw new Error(`a list was answered with ${counted.status}`)
      firstByteMs = counted.firstByteAtMs - startedMs
      bytes = counted.bytes
      pages = 1
    } else {
      let token = ''
      do {
        const { body, status, firstByteAtMs } = await connection.request('GET', `${path}?limit=${limit}${token && `&continue=${token}`}`)
        if (status !== 200) throw new Error(`a list was answered with ${status}: ${body.subarray(0, 300)}`)
        if (pages++ === 0) firstByteMs = firstByteAtMs - startedMs
        bytes += body.length
        token = /"continue":"([^"]+)"/.exec(body.toString('latin1', 0, 400))?.[1] ?? ''
      } while (token)
    }
    const ms = performance.now() - startedMs
    isDone = true
    await probing
    reports.push({ ms, firstByteMs, pauseMs, bytes, pages })
  }
  connection.close()
  prober.close()
  const median = (pick: (report: ListReport) => number) => reports.map(pick).sort((a, b) => a - b)[reports.length >> 1] as number
  return {
    ms: median(r => r.ms),
    firstByteMs: median(r => r.firstByteMs),
    pauseMs: median(r => r.pauseMs),
    bytes: reports[0]?.bytes ?? 0,
    pages: reports[0]?.pages ?? 0,
  }
}

if (import.meta.main) {
  console.log(JSON.stringify(await main(JSON.parse(process.argv[2] as string))))
  process.exit()
}
