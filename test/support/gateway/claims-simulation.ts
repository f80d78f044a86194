/** Two gateways, two partitions and one name, on virtual time: claims are made, used, renewed and removed in every order, with clocks that differ. */
import { decideClaim, defaultRemoveAfterMs } from '../../../src/controllers/claims/index.ts'
import { createWithinMs } from '../../../src/gateway/index.ts'
import { laterRevision, nextRevision, revisionEpochMs } from '../../../src/kubernetes/util/index.ts'
import { seededRandom } from '../../../src/kubernetes/util/seeded-random.ts'

type Claim = { partition: string; uid: number; version: number }
type Fault = 'removed early' | 'without its version' | 'created late'

/** One run; returns the violations of "a name is in one partition" and what was done, so that a run that does nothing is seen. */
export function simulateClaims(seed: number, fault?: Fault) {
  const random = seededRandom(seed)
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low))
  const startMs = revisionEpochMs + 1_000_000_000
  let nowMs = startMs
  const queue: { atMs: number; run: () => void }[] = []
  const after = (ms: number, run: () => void) => void queue.push({ atMs: nowMs + ms, run })
  let homeVersion = 0
  let uids = 0
  let claim: Claim | undefined
  const names = ['p1', 'p2'] as const
  const partitions = new Map(
    names.map((name, index) => [name as string, { number: index + 1, skewMs: between(-25_000, 25_000), version: 0, exists: false }]),
  )
  const partition = (name: string) => partitions.get(name) as NonNullable<ReturnType<typeof partitions.get>>
  const clockOf = (name: string) => nowMs + partition(name).skewMs
  const writeAtHome = () => (homeVersion = nextRevision(homeVersion, nowMs, 0))
  const done = { created: 0, tooLate: 0, removed: 0, kept: 0, taken: 0 }
  const violations: string[] = []

  /** A gateway: claims or renews, then creates after any time; it may end in between. */
  const create = (wanted: string) => {
    if (claim && claim.partition !== wanted) {
      done.taken++
      return
    }
    claim = { partition: wanted, uid: claim?.uid ?? ++uids, version: writeAtHome() }
    const notAfter = laterRevision(claim.version, fault === 'created late' ? 1_000_000 : createWithinMs)
    if (random() < 0.2) return
    after(random() < 0.7 ? between(0, 200) : between(0, 90_000), () => {
      const to = partition(wanted)
      const version = nextRevision(to.version, clockOf(wanted), to.number)
      if (to.exists) return
      if (version > notAfter) {
        done.tooLate++
        return
      }
      to.version = version
      to.exists = true
      done.created++
      if (names.every(name => partition(name).exists))
        violations.push(`seed ${seed}: both partitions have it ${nowMs - startMs} ms after the start`)
    })
  }
  /** The controller of a partition: it sees a claim late, reads, and deletes later still. */
  const control = (name: string) => {
    const seen = claim
    after(between(0, 2_000), () => {
      if (!seen || seen.partition !== name) return
      const own = partition(name)
      const removeAfterMs = fault === 'removed early' ? 5_000 : defaultRemoveAfterMs
      const { version } = seen
      if (decideClaim({ version, isHere: own.exists, nowMs: clockOf(name), removeAfterMs }).kind !== 'read') return
      own.version = nextRevision(own.version, clockOf(name), own.number)
      const decision = decideClaim({ version, isHere: own.exists, nowMs: clockOf(name), missingAt: own.version, removeAfterMs })
      if (decision.kind !== 'remove') return
      after(between(0, 40_000), () => {
        if (!claim || claim.uid !== seen.uid) return
        if (claim.version !== seen.version && fault !== 'without its version') {
          done.kept++
          return
        }
        claim = undefined
        writeAtHome()
        done.removed++
      })
    })
  }
  const quietMs = startMs + 1_800_000
  const every = (low: number, high: number, run: () => void, untilMs = quietMs) => {
    const again = () => {
      run()
      if (nowMs < untilMs) after(between(low, high), again)
    }
    after(between(0, high), again)
  }
  for (const _ of ['gateway 1', 'gateway 2']) every(500, 60_000, () => create(names[between(0, 2)] as string))
  for (const name of names) {
    // After the last creation there is time to remove what is left.
    every(500, 5_000, () => control(name), quietMs + 300_000)
    every(1_000, 60_000, () => {
      partition(name).exists = false
    })
  }
  while (queue.length > 0) {
    queue.sort((a, b) => a.atMs - b.atMs)
    const next = queue.shift() as (typeof queue)[number]
    nowMs = Math.max(nowMs, next.atMs)
    next.run()
  }
  return { violations, done, left: claim !== undefined && !partition(claim.partition).exists }
}
