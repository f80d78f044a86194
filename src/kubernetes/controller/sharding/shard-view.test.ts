import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { bucketCount } from './bucket.ts'
import { isAtRest, type ShardMember, type ShardView } from './shard-view.ts'

const all = Array.from({ length: bucketCount }, (_, bucket) => bucket)
const half = bucketCount / 2

function viewOf(...members: Partial<ShardMember>[]): ShardView {
  const rest = { isLeaving: false, renewTime: undefined, leaseDurationMs: undefined, buckets: [], gaining: [], losing: [] }
  return {
    version: 1,
    fence: 1,
    members: members.map((member, slot) => ({ slot, session: `m${slot}.1`, ...rest, ...member })),
    ownerOf: () => undefined,
  }
}

const [first, second] = [{ buckets: all.slice(0, half) }, { buckets: all.slice(half) }]

for (const [name, view, want] of [
  ['two members with all buckets', viewOf(first, second), true],
  ['no ring', undefined, false],
  ['one member with all buckets', viewOf({ buckets: all }), false],
  ['a third member without buckets', viewOf(first, second, {}), false],
  ['a vacant slot without buckets', viewOf(first, second, { session: undefined }), true],
  ['a vacant slot that still holds buckets', viewOf(first, { ...second, session: undefined }), false],
  ['a bucket that no member holds', viewOf(first, { buckets: all.slice(half + 1) }), false],
  ['a bucket that moves', viewOf(first, { ...second, gaining: [0] }), false],
  ['a bucket that is given up', viewOf({ ...first, losing: [0] }, second), false],
] as const)
  test(`a ring for two members with ${name} is ${want ? '' : 'not '}at rest`, () => equal(isAtRest(view, 2), want))
