/** One change of a resource that a worker executes with the author's code, as its Stack carries it. */
import type { Stack } from '../../../api/index.ts'
import { isJsonObject, type JsonObject } from '../../../kubernetes/object/index.ts'
import type { Observation } from '../managed-object.ts'

export const operationKinds = ['create', 'update', 'delete'] as const
export type OperationKind = (typeof operationKinds)[number]

/** The variable `operation` of the Stack. */
export type Operation = {
  readonly kind: OperationKind
  /** The epoch of its first Run: a later one that must not repeat it refuses. Rises with each operation of the Stack. */
  readonly number: number
  /** Whether a Run that was lost or has failed may be repeated: not the creation of something whose name is not known before. */
  readonly isRepeatable: boolean
  /** Of a creation: the mark `external-create-pending`, written before. */
  readonly mark?: string | undefined
  readonly externalName?: string | undefined
  /** Of the resource. */
  readonly generation: number
  /** Consecutive failures before it. */
  readonly failures: number
  readonly fence?: number | undefined
}

/** All variables of such a Stack. */
export type OperationVariables = {
  readonly operation: Operation
  readonly object: JsonObject
  readonly observation?: Observation | undefined
  readonly variables?: JsonObject | undefined
}

export function operationOf({ spec }: Pick<Stack, 'spec'>): Operation | undefined {
  const { operation } = spec.variables ?? {}
  return isJsonObject(operation) && typeof operation.number === 'number' ? (operation as unknown as Operation) : undefined
}

/** How the program of a provider ends, so that the message of the Run shows it: any other code leaves the result unknown. */
export const exitCodes = { failed: 10, unknown: 11, refused: 12 } as const
