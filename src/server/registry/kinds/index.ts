/**
 * @module registry/kinds: every built-in kind, a row each, in a file for each family of kinds.
 * In: nothing. Out: rows that `built-in-kinds.ts` compiles to `Kind`s. What a kind's own server side fills in and checks
 * stands beside its row.
 */
import { configKinds } from './config.ts'
import { coordinationKinds } from './coordination.ts'
import { definitionKinds } from './definitions.ts'
import { eventKinds } from './events.ts'
import { namespaceKinds } from './namespace.ts'
import type { Row } from './row.ts'
import { serviceAccountKinds } from './service-account.ts'

export const rows: readonly Row[] = [
  ...namespaceKinds,
  ...configKinds,
  ...serviceAccountKinds,
  ...eventKinds,
  ...coordinationKinds,
  ...definitionKinds,
]

export { type Row, text } from './row.ts'
