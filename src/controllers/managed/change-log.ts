import type { ManagedObject } from './managed-object.ts'

/** One change of an external resource, with the fields of Crossplane's change log. */
export type ChangeLogEntry = {
  /** RFC 3339. */
  readonly timestamp: string
  /** Name of the controller. */
  readonly provider: string
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly namespace: string | undefined
  readonly externalName: string
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  /** The object before the change. */
  readonly snapshot: ManagedObject
  /** Why the change failed; undefined if it did not. */
  readonly errorMessage: string | undefined
  readonly additionalDetails: Readonly<Record<string, string>>
}

/** Receives every change that was attempted. An error of it is logged and changes nothing. */
export type ChangeLog = (entry: ChangeLogEntry) => Promise<void> | void
