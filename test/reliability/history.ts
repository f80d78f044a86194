/** Checks whether the requests and observations of all clients of one resource could have come from a correct server. */

/** One request of one client. `startedAt` and `endedAt` are logical times of requests and responses: they order operations that did not overlap. */
export type Operation = {
  readonly key: string
  readonly type: 'create' | 'update' | 'patch' | 'delete' | 'get'
  /** The written value, unique per write. */
  readonly value: string
  /** Update: the resource version in the request. */
  readonly basedOn?: number
  /** Delete: the uid of the object. */
  readonly uid?: string
  readonly startedAt: number
  endedAt?: number
  /** `unknown`: no response; the write may or may not be applied, possibly later. */
  result: 'done' | 'rejected' | 'unknown'
  /** The object in the response. */
  seen?: Version
}

/** One state of a key. */
export type Version = { readonly revision: number; readonly value: string; readonly uid: string }

export type WatchedEvent = Version & { readonly key: string; readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' }

/** A list at `revision`, then every event up to when the connection ended. A resumed watch starts at the last revision of the previous one. */
export type WatchLog = {
  readonly revision: number
  readonly listed: ReadonlyMap<string, Version>
  readonly events: WatchedEvent[]
  readonly listedAt: number
}

/** Returns a description of each violation; empty for a correct history. */
export function check(operations: readonly Operation[], watches: readonly WatchLog[]): string[] {
  const violations: string[] = []
  const report = (text: string) => {
    if (violations.length < 20) violations.push(text)
  }
  const versions = collectVersions(operations, watches, report)
  for (const watch of watches) checkWatch(watch, operations, report)
  checkWrites(operations, versions, report)
  checkOrder(operations, watches, report)
  return violations
}

type Report = (text: string) => void

/** All observed versions by key. Each revision must have one value and each value one revision, because no write may be applied twice. */
function collectVersions(
  operations: readonly Operation[],
  watches: readonly WatchLog[],
  report: Report,
): Map<string, Map<number, Version>> {
  const byKey = new Map<string, Map<number, Version>>()
  const revisionOf = new Map<string, number>()
  const add = (key: string, version: Version, where: string) => {
    const known = byKey.get(key) ?? new Map<number, Version>()
    byKey.set(key, known)
    const same = known.get(version.revision)
    if (same && (same.value !== version.value || same.uid !== version.uid)) {
      report(`${key}: revision ${version.revision} is ${same.value} and, in ${where}, ${version.value}`)
    }
    known.set(version.revision, version)
    const before = revisionOf.get(version.value)
    if (before !== undefined && before !== version.revision) {
      report(`${key}: ${version.value} was written twice, at ${before} and, in ${where}, at ${version.revision}`)
    }
    revisionOf.set(version.value, version.revision)
  }
  for (const { key, seen, type } of operations) if (seen) add(key, seen, `the response to a ${type}`)
  for (const { listed, events } of watches) {
    for (const [key, version] of listed) add(key, version, 'a list')
    // A deletion has a revision of its own and shows the last state.
    for (const event of events) if (event.type !== 'DELETED') add(event.key, event, 'a watch')
  }
  const rejected = new Set(operations.filter(({ result }) => result === 'rejected').map(({ value }) => value))
  for (const value of revisionOf.keys()) if (rejected.has(value)) report(`${value} was rejected, but is present`)
  return byKey
}

/** Invariant 6: events are in order, each is sent once, none is missing, and each is consistent with the state before it. */
function checkWatch({ revision, listed, events }: WatchLog, operations: readonly Operation[], report: Report): void {
  let last = revision
  const state = new Map(listed)
  for (const event of events) {
    if (event.revision <= last) report(`a watch shows ${event.revision} after ${last}`)
    last = event.revision
    const before = state.get(event.key)
    if ((event.type === 'ADDED') !== (before === undefined))
      report(`a watch shows ${event.type} of ${event.key}, which ${before ? 'exists' : 'does not exist'}`)
    if (event.type === 'DELETED') {
      if (before && before.value !== event.value) report(`a watch shows ${event.key} deleted as ${event.value}, it was ${before.value}`)
      state.delete(event.key)
    } else state.set(event.key, event)
  }
  const shown = new Set(events.map(event => `${event.key} ${event.revision}`))
  for (const { key, type, result, seen } of operations) {
    if (type === 'get' || type === 'delete' || result !== 'done' || !seen) continue
    const isWithin = seen.revision > revision && seen.revision <= last
    if (isWithin && !shown.has(`${key} ${seen.revision}`)) report(`a watch from ${revision} to ${last} omits ${key} at ${seen.revision}`)
  }
}

/** Checks that no other write came between a successful update and the version it was based on. */
function checkWrites(operations: readonly Operation[], versions: ReadonlyMap<string, ReadonlyMap<number, Version>>, report: Report): void {
  for (const { key, type, result, basedOn, seen } of operations) {
    if (type !== 'update' || result !== 'done' || basedOn === undefined || !seen) continue
    for (const revision of versions.get(key)!.keys()) {
      if (revision > basedOn && revision < seen.revision)
        report(`${key}: the update to ${seen.revision} was based on ${basedOn}, but ${revision} came between`)
    }
  }
}

/** Checks that every later response, and every list after a restart, includes each acknowledged write (invariant 5). */
function checkOrder(operations: readonly Operation[], watches: readonly WatchLog[], report: Report): void {
  type Observation = { startedAt: number; endedAt: number; seen: Version | undefined; what: string }
  const keys = new Map<string, { writes: Operation[]; observations: Observation[] }>()
  const of = (key: string) => {
    const found = keys.get(key) ?? { writes: [], observations: [] }
    keys.set(key, found)
    return found
  }
  for (const operation of operations) {
    const { key, type, result, startedAt, endedAt, seen } = operation
    if (type !== 'get') of(key).writes.push(operation)
    if (endedAt !== undefined && result === 'done' && type !== 'delete')
      of(key).observations.push({ startedAt, endedAt, seen, what: `a ${type}` })
  }
  for (const [key, { observations }] of keys) {
    for (const { listed, listedAt } of watches)
      observations.push({ startedAt: listedAt, endedAt: listedAt, seen: listed.get(key), what: 'a list' })
  }
  for (const [key, { writes, observations }] of keys) {
    const ended = writes.filter(write => write.result === 'done' && write.endedAt !== undefined).sort((a, b) => a.endedAt! - b.endedAt!)
    const deletes = writes.filter(write => write.type === 'delete' && write.result !== 'rejected')
    observations.sort((a, b) => a.startedAt - b.startedAt)
    let newest: Version | undefined
    const deleted = new Set<string>()
    let next = 0
    for (const observation of observations) {
      for (; next < ended.length && ended[next]!.endedAt! < observation.startedAt; next++) {
        const write = ended[next]!
        if (write.type === 'delete') deleted.add(write.uid!)
        else if (!newest || write.seen!.revision > newest.revision) newest = write.seen
      }
      const { seen, what } = observation
      if (seen && deleted.has(seen.uid)) report(`${key}: ${what} shows an object whose deletion was acknowledged before`)
      if (!newest) continue
      if (seen && seen.revision < newest.revision)
        report(`${key}: ${what} shows ${seen.revision}, but ${newest.revision} was acknowledged before`)
      // Only a delete of this object, acknowledged or not, can explain its absence.
      const { uid } = newest
      if (!seen && !deletes.some(write => write.uid === uid && write.startedAt < observation.endedAt)) {
        report(`${key}: ${what} shows nothing, but ${newest.value} was acknowledged before`)
      }
    }
  }
}
