/** What clients did to the keys of one resource and what they saw, and whether a correct server can have done that. */

/** One request of one client. `beganAt` and `endedAt` count requests and answers: they order what did not overlap. */
export type Operation = {
  readonly key: string
  readonly type: 'create' | 'update' | 'patch' | 'delete' | 'get'
  /** Unique for each write: what it puts there. */
  readonly value: string
  /** Update: the version it must be based on. */
  readonly basedOn?: number
  /** Delete: the object that is meant. */
  readonly uid?: string
  readonly beganAt: number
  endedAt?: number
  /** `unknown`: no answer came; it was done, or not, or will have been. */
  result: 'done' | 'refused' | 'unknown'
  /** What the answer showed, for writes what they made. */
  seen?: Version
}

/** One state of a key. */
export type Version = { readonly revision: number; readonly value: string; readonly uid: string }

export type WatchedEvent = Version & { readonly key: string; readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' }

/** A list at `revision`, then every event up to when the connection ended. A watch that goes on after a break begins where the last ended. */
export type WatchLog = {
  readonly revision: number
  readonly listed: ReadonlyMap<string, Version>
  readonly events: WatchedEvent[]
  readonly listedAt: number
}

/** What is wrong, in words; empty when everything is as it must be. */
export function check(operations: readonly Operation[], watches: readonly WatchLog[]): string[] {
  const faults: string[] = []
  const fault = (text: string) => {
    if (faults.length < 20) faults.push(text)
  }
  const versions = gather(operations, watches, fault)
  for (const watch of watches) checkWatch(watch, operations, fault)
  checkWrites(operations, versions, fault)
  checkOrder(operations, watches, fault)
  return faults
}

type Fault = (text: string) => void

/** All versions that anybody saw, by key. One revision has one content, one value has one revision: nothing is done twice. */
function gather(operations: readonly Operation[], watches: readonly WatchLog[], fault: Fault): Map<string, Map<number, Version>> {
  const byKey = new Map<string, Map<number, Version>>()
  const revisionOf = new Map<string, number>()
  const add = (key: string, version: Version, where: string) => {
    const known = byKey.get(key) ?? new Map<number, Version>()
    byKey.set(key, known)
    const same = known.get(version.revision)
    if (same && (same.value !== version.value || same.uid !== version.uid)) {
      fault(`${key}: revision ${version.revision} is ${same.value} and, in ${where}, ${version.value}`)
    }
    known.set(version.revision, version)
    const before = revisionOf.get(version.value)
    if (before !== undefined && before !== version.revision) {
      fault(`${key}: ${version.value} was written twice, at ${before} and, in ${where}, at ${version.revision}`)
    }
    revisionOf.set(version.value, version.revision)
  }
  for (const { key, seen, type } of operations) if (seen) add(key, seen, `the answer to a ${type}`)
  for (const { listed, events } of watches) {
    for (const [key, version] of listed) add(key, version, 'a list')
    // A deletion has a revision of its own and shows the last state.
    for (const event of events) if (event.type !== 'DELETED') add(event.key, event, 'a watch')
  }
  const refused = new Set(operations.filter(({ result }) => result === 'refused').map(({ value }) => value))
  for (const value of revisionOf.keys()) if (refused.has(value)) fault(`${value} was refused, and is there`)
  return byKey
}

/** Invariant 6: in order, each once, none left out, and each fits to what came before. */
function checkWatch({ revision, listed, events }: WatchLog, operations: readonly Operation[], fault: Fault): void {
  let last = revision
  const state = new Map(listed)
  for (const event of events) {
    if (event.revision <= last) fault(`a watch shows ${event.revision} after ${last}`)
    last = event.revision
    const before = state.get(event.key)
    if ((event.type === 'ADDED') !== (before === undefined))
      fault(`a watch shows ${event.type} of ${event.key}, which ${before ? 'is' : 'is not'} there`)
    if (event.type === 'DELETED') {
      if (before && before.value !== event.value) fault(`a watch shows ${event.key} deleted as ${event.value}, it was ${before.value}`)
      state.delete(event.key)
    } else state.set(event.key, event)
  }
  const shown = new Set(events.map(event => `${event.key} ${event.revision}`))
  for (const { key, type, result, seen } of operations) {
    if (type === 'get' || type === 'delete' || result !== 'done' || !seen) continue
    const isWithin = seen.revision > revision && seen.revision <= last
    if (isWithin && !shown.has(`${key} ${seen.revision}`))
      fault(`a watch from ${revision} to ${last} leaves out ${key} at ${seen.revision}`)
  }
}

/** An update that was done replaced exactly the version it was based on. */
function checkWrites(operations: readonly Operation[], versions: ReadonlyMap<string, ReadonlyMap<number, Version>>, fault: Fault): void {
  for (const { key, type, result, basedOn, seen } of operations) {
    if (type !== 'update' || result !== 'done' || basedOn === undefined || !seen) continue
    for (const revision of versions.get(key)!.keys()) {
      if (revision > basedOn && revision < seen.revision)
        fault(`${key}: the update to ${seen.revision} was based on ${basedOn}, but ${revision} came between`)
    }
  }
}

/** What was acknowledged is seen by all that begins later: by answers, and by lists after a restart (invariant 5). */
function checkOrder(operations: readonly Operation[], watches: readonly WatchLog[], fault: Fault): void {
  type Look = { beganAt: number; endedAt: number; seen: Version | undefined; what: string }
  const keys = new Map<string, { writes: Operation[]; looks: Look[] }>()
  const of = (key: string) => {
    const found = keys.get(key) ?? { writes: [], looks: [] }
    keys.set(key, found)
    return found
  }
  for (const operation of operations) {
    const { key, type, result, beganAt, endedAt, seen } = operation
    if (type !== 'get') of(key).writes.push(operation)
    if (endedAt !== undefined && result === 'done' && type !== 'delete') of(key).looks.push({ beganAt, endedAt, seen, what: `a ${type}` })
  }
  for (const [key, { looks }] of keys) {
    for (const { listed, listedAt } of watches) looks.push({ beganAt: listedAt, endedAt: listedAt, seen: listed.get(key), what: 'a list' })
  }
  for (const [key, { writes, looks }] of keys) {
    const ended = writes.filter(write => write.result === 'done' && write.endedAt !== undefined).sort((a, b) => a.endedAt! - b.endedAt!)
    const deletes = writes.filter(write => write.type === 'delete' && write.result !== 'refused')
    looks.sort((a, b) => a.beganAt - b.beganAt)
    let newest: Version | undefined
    const gone = new Set<string>()
    let next = 0
    for (const look of looks) {
      for (; next < ended.length && ended[next]!.endedAt! < look.beganAt; next++) {
        const write = ended[next]!
        if (write.type === 'delete') gone.add(write.uid!)
        else if (!newest || write.seen!.revision > newest.revision) newest = write.seen
      }
      const { seen, what } = look
      if (seen && gone.has(seen.uid)) fault(`${key}: ${what} shows an object whose deletion was acknowledged before`)
      if (!newest) continue
      if (seen && seen.revision < newest.revision)
        fault(`${key}: ${what} shows ${seen.revision}, but ${newest.revision} was acknowledged before`)
      // A delete of that very object, acknowledged or in doubt, is the only way to be gone.
      const { uid } = newest
      if (!seen && !deletes.some(write => write.uid === uid && write.beganAt < look.endedAt)) {
        fault(`${key}: ${what} shows nothing, but ${newest.value} was acknowledged before`)
      }
    }
  }
}
