/** What Terraform sends with LOCK and expects back with 423; fields are as in Terraform's `statemgr.LockInfo`. */
export type LockInfo = {
  ID: string
  Operation?: string
  Info?: string
  Who?: string
  Version?: string
  Created?: string
  Path?: string
}

/** A Run of Oarlock: the lock is its own as long as its epoch is the newest (invariant 3). */
export type RunHolder = { kind: 'Run'; runName: string; epoch: number }

/** A person or another tool that came through the Terraform HTTP backend; known by the lock id it chose. */
export type PersonHolder = { kind: 'Person'; id: string; who: string; info: LockInfo }

export type LockHolder = RunHolder | PersonHolder

/** True when both are the same holder: a Run by name and epoch, a person by lock id. */
export function isSameHolder(a: LockHolder, b: LockHolder): boolean {
  if (a.kind === 'Run') return b.kind === 'Run' && a.runName === b.runName && a.epoch === b.epoch
  return b.kind === 'Person' && a.id === b.id
}

/** One line for people: who holds the lock. */
export function describeHolder(holder: LockHolder): string {
  if (holder.kind === 'Run') return `run ${holder.runName} (epoch ${holder.epoch})`
  const operation = holder.info.Operation ? ` for ${holder.info.Operation}` : ''
  return `${holder.who || 'an unnamed person'}${operation} (lock id ${holder.id})`
}

/**
 * The lock as a person who has to wait is shown it. Of all this Terraform 1.11 prints only the ID ("already locked: ID=…") and then its own
 * lock info, so the ID says who it is. `Created` must be RFC 3339: Terraform drops the whole answer when one field does not parse.
 */
export function toLockInfo(holder: LockHolder, sinceMs: number, path: string): LockInfo {
  if (holder.kind === 'Person') return holder.info
  return {
    ID: `oarlock-run-${holder.runName}`,
    Operation: 'OarlockRun',
    Info: 'held by Oarlock while this run works; it is released when the run ends, or cancel the run',
    Who: describeHolder(holder),
    Version: '',
    Created: new Date(sinceMs).toISOString(),
    Path: path,
  }
}
