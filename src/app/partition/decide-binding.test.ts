import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { PartitionObject } from '../../gateway/index.ts'
import { decideBinding, directoryAnnotation } from './decide-binding.ts'

const server = 'https://10.0.0.2:7466'
const partition = (bound?: string, address?: string) =>
  ({
    metadata: { name: 't1', annotations: bound === undefined ? undefined : { [directoryAnnotation]: bound } },
    spec: { number: 1, roles: [], ...(address && { server: address }) },
  }) as unknown as PartitionObject
const empty = { id: 'own', isBound: false }
const used = { id: 'own', isBound: true }

for (const { name, at, directory, replaces = false, want } of [
  { name: 'the first server of a Partition is bound', at: partition(), directory: empty, want: { kind: 'bind', isFirst: true } },
  { name: 'a Partition that home does not have is bound', at: undefined, directory: empty, want: { kind: 'bind', isFirst: true } },
  { name: 'the own directory is bound already', at: partition('own', server), directory: used, want: { kind: 'bound' } },
  { name: 'another empty directory is rejected', at: partition('other', server), directory: empty, want: { kind: 'reject', server } },
  { name: 'another used directory is rejected', at: partition('other', server), directory: used, want: { kind: 'reject', server } },
  {
    name: 'another directory is rejected before the address',
    at: partition('other'),
    directory: empty,
    want: { kind: 'reject', server: undefined },
  },
  {
    name: 'a used directory is bound at its upgrade',
    at: partition(undefined, server),
    directory: used,
    want: { kind: 'bind', isFirst: true },
  },
  {
    name: 'an empty directory is rejected at an upgrade',
    at: partition(undefined, server),
    directory: empty,
    want: { kind: 'reject', server },
  },
  {
    name: 'another directory that is lost is replaced',
    ...{ at: partition('other', server), directory: empty, replaces: true, want: { kind: 'bind', isFirst: false } },
  },
] as const)
  test(name, () => deepEqual(decideBinding(at, directory, replaces), want))
