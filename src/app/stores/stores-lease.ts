import { createHash, randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { hostname } from 'node:os'
import { systemNamespace } from '../../api/index.ts'
import { type Client, leaseResource } from '../../kubernetes/client/index.ts'
import type { LeaseStore } from '../../kubernetes/controller/index.ts'
import { bootId } from '../../kubernetes/util/index.ts'

export const storesLeaseName = 'oarlock-stores'
/** Owns no field. */
const creator = 'oarlock-stores-lease'

/**
 * Identifies a locked file: a process with the lock on it knows that the process that had this id before has ended. Inodes are those of
 * one running kernel.
 */
export function lockIdOf(file: string): string {
  const { dev, ino } = statSync(file, { bigint: true })
  return createHash('sha256').update(`${kernelId()} ${dev} ${ino}`).digest('hex').slice(0, 16)
}

const kernelId = (): string => bootId() ?? hostname()

/** The identity of this process as holder of the Lease. */
export const newHolder = (lockId: string): string => [hostname(), process.pid, lockId, randomBytes(8).toString('hex')].join('_')

const partsOf = (holder: string) => {
  const [lockId, pid, ...host] = holder.split('_').slice(0, -1).reverse()
  return { lockId, pid, host: host.reverse().join('_') }
}

/** For messages: `process 123 on vm1`. */
export function formatHolder(holder: string): string {
  const { pid, host } = partsOf(holder)
  return pid !== undefined && host !== '' ? `process ${pid} on ${host}` : holder
}

export type StoresLeaseOptions = {
  client: Client
  /** Of this process. */
  holder: string
  /** Bounds each request. */
  timeoutMs: number
  /** Another process holds the Lease, and has renewed it since it was first seen if `isAlive`. */
  onHeld(holder: string, isAlive: boolean): void
  onError(error: unknown): void
}

/** The Lease of the stores. One that an earlier process with the lock of this one has left is free. */
export function storesLease({ client, holder, timeoutMs, onHeld, onError }: StoresLeaseOptions): LeaseStore {
  const { lockId } = partsOf(holder)
  const bounded = () => ({ signal: AbortSignal.timeout(timeoutMs) })
  let seen = { holder: '', renewTime: '', changes: 0 }
  const reportErrors = async <Result>(request: Promise<Result>): Promise<Result> => {
    try {
      return await request
    } catch (error) {
      onError(error)
      throw error
    }
  }
  return {
    read: async () => {
      const lease = await reportErrors(
        client.resource(leaseResource).getOrUndefined(storesLeaseName, { namespace: systemNamespace, ...bounded() }),
      )
      const current = lease?.spec?.holderIdentity ?? ''
      const renewTime = lease?.spec?.renewTime ?? ''
      if (!lease || current === '' || current === holder) return lease
      if (partsOf(current).lockId === lockId) return { ...lease, spec: { ...lease.spec, holderIdentity: '' } }
      const changes = seen.holder !== current ? 0 : seen.changes + (seen.renewTime === renewTime ? 0 : 1)
      seen = { holder: current, renewTime, changes }
      // One change may be that of an API server that started after a crash, on behalf of the holder.
      onHeld(current, changes > 1)
      return lease
    },
    create: async ({ metadata, spec }) => {
      // By apply and not by create, which RBAC cannot restrict to a name.
      const { name, namespace } = metadata
      const leases = client.resource(leaseResource)
      const created = await reportErrors(leases.apply({ metadata: { name, namespace } }, { fieldManager: creator, ...bounded() }))
      return await reportErrors(leases.update({ ...created, spec }, bounded()))
    },
    update: lease => reportErrors(client.resource(leaseResource).update(lease, bounded())),
  }
}
