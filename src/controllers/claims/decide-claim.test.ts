import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { laterRevision, nextRevision } from '../../kubernetes/util/index.ts'
import { decideClaim } from './decide-claim.ts'

const claimedAtMs = Date.UTC(2026, 10, 27)
const version = nextRevision(0, claimedAtMs, 0)
const after = (ms: number) => claimedAtMs + ms

for (const { name, isHere = false, nowMs, missingAt, keepUpTo = 0, want } of [
  { name: 'a claim stays while its object is here', isHere: true, nowMs: after(999_999), want: { kind: 'keep' } },
  { name: 'a new claim waits for its object', nowMs: after(10_000), want: { kind: 'wait', ms: 50_000 } },
  { name: 'the instant of 60 s is not later than 60 s', nowMs: after(60_000), want: { kind: 'wait', ms: 1_000 } },
  { name: 'after 60 s the partition is read', nowMs: after(60_001), want: { kind: 'read' } },
  {
    name: 'an object that is missing at a version of more than 60 s later is gone',
    nowMs: after(70_000),
    missingAt: laterRevision(version, 60_000) + 1,
    want: { kind: 'remove' },
  },
  {
    name: 'a partition whose versions are behind the clock proves nothing',
    nowMs: after(70_000),
    missingAt: laterRevision(version, 55_000),
    want: { kind: 'wait', ms: 5_000 },
  },
  {
    name: 'a claim from before the data directory was that of the partition stays',
    nowMs: after(70_000),
    missingAt: laterRevision(version, 60_000) + 1,
    keepUpTo: version,
    want: { kind: 'keep' },
  },
  {
    name: 'a claim that was made or renewed since is removed',
    nowMs: after(70_000),
    missingAt: laterRevision(version, 60_000) + 1,
    keepUpTo: version - 1,
    want: { kind: 'remove' },
  },
] as const)
  test(name, () => deepEqual(decideClaim({ version, isHere, nowMs, missingAt, keepUpTo }), want))
