import type { RunSpec } from './run.ts'

/** What decides which Runs share what one of them has built or downloaded. */
export type TrustDomainOwner = {
  readonly namespace: string
  /** Of the namespace, as the dispatcher records it in the Run. */
  readonly tenant: RunSpec['tenant']
  /** The isolation level in effect, after policies, is Sandbox. */
  readonly isSandboxed: boolean
}

/**
 * The Runs that share what one of them has built or downloaded without proof of its content: those of the Tenant, else of the namespace. Sandboxed
 * Runs do not share with those that are not. Equal names are never of different domains: a Tenant is identified by its UID. It is a valid
 * name of a directory.
 */
export function trustDomainName({ namespace, tenant, isSandboxed }: TrustDomainOwner): string {
  const owner = tenant ? `tenant-${tenant.uid}` : `namespace-${namespace}`
  return isSandboxed ? owner : `process-${owner}`
}
