import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { PartitionObject } from '../../gateway/index.ts'
import { tenantPartitionError } from './tenant-partition-error.ts'

const partition = (name: string, roles: PartitionObject['spec']['roles']) =>
  ({ metadata: { name }, spec: { number: 1, roles } }) as unknown as PartitionObject
const partitions = [partition('t2', ['Tenants']), partition('r1', ['Resources']), partition('t1', ['Tenants', 'Resources'])]

for (const { name, label, among = partitions, want } of [
  { name: 'a partition with the role Tenants has no error', label: 't1', want: undefined },
  { name: 'a Tenant without a partition has no error', label: undefined, want: undefined },
  {
    name: 'a partition that does not exist is named',
    label: 't3',
    want: 'label oarlock.dev/partition names partition "t3", which does not exist; partitions for Tenants are t1, t2',
  },
  {
    name: 'a partition without the role Tenants is named',
    label: 'r1',
    want: 'label oarlock.dev/partition names partition "r1", which does not have the role Tenants; partitions for Tenants are t1, t2',
  },
  {
    name: 'an installation without a partition for Tenants is named',
    label: 't1',
    among: [],
    want: 'label oarlock.dev/partition names partition "t1", which does not exist; no partition has the role Tenants',
  },
])
  test(name, () => equal(tenantPartitionError(label, among), want))
