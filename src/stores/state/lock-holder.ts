/** The lock info that Terraform sends with LOCK and expects with 423; fields as in Terraform's `statemgr.LockInfo`. */
export type LockInfo = {
  ID: string
  Operation?: string
  Info?: string
  Who?: string
  Version?: string
  Created?: string
  Path?: string
}

/** A Run, which holds the lock while its epoch is the newest (invariant 3). */
export type RunHolder = { kind: 'Run'; runName: string; epoch: number }

/** A user or tool that locked through the Terraform HTTP backend, identified by the lock id it chose. */
export type UserHolder = { kind: 'User'; id: string; who: string; info: LockInfo }

export type LockHolder = RunHolder | UserHolder

/** True when both are the same holder: a Run by name and epoch, a user by lock id. */
export function isSameHolder(a: LockHolder, b: LockHolder): boolean {
  if (a.kind === 'Run') return b.kind === 'Run' && a.runName === b.runName && a.epoch === b.epoch
  return b.kind === 'User' && a.id === b.id
}

/** `run app-3f2a1-4 (epoch 4)`, or `ada@laptop for OperationTypeApply (lock id …)`. */
export function describeHolder(holder: LockHolder): string {
  if (holder.kind === 'Run') return `run ${holder.runName} (epoch ${holder.epoch})`
  const operation = holder.info.Operation ? ` for ${holder.info.Operation}` : ''
  return `${holder.who || 'an unnamed user'}${operation} (lock id ${holder.id})`
}

/**
 * The lock info for a user who has to wait. Of it Terraform 1.11 prints only the ID ("already locked: ID=…") and then its own lock
 * info, so the ID names the holder. `Created` must be RFC 3339: Terraform drops the whole response when one field does not parse.
 */
export function toLockInfo(holder: LockHolder, sinceMs: number, path: string): LockInfo {
  if (holder.kind === 'User') return holder.info
  return {
    ID: `oarlock-run-${holder.runName}`,
    Operation: 'OarlockRun',
    Info: 'held by Oarlock while this run is active; wait for the run or cancel it',
    Who: describeHolder(holder),
    Version: '',
    Created: new Date(sinceMs).toISOString(),
    Path: path,
  }
}
