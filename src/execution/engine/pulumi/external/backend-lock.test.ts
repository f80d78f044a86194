import { deepEqual, equal } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseLockConflict } from './backend-lock.ts'

/** What CLI 3.260.0 writes to stderr, as `PulumiCli` collects it: without warnings, labels of errors, and spaces at the start of a line. */
const locked = (count: number) =>
  `the stack is currently locked by ${count} lock(s). Either wait for the other process(es) to end or delete the lock file with \`pulumi cancel\`.`
const directory = 'file:///srv/states/.pulumi/locks/organization/shop/dev'
const first = `${directory}/50ccbe92-b99a-45aa-a9c0-acd129772087.json?no_tmp_dir=true: created by root@vm (pid 24395) at 2026-11-23T20:18:34Z`
const firstLock = {
  url: `${directory}/50ccbe92-b99a-45aa-a9c0-acd129772087.json`,
  ...{ user: 'root', host: 'vm', pid: 24395, createdAtMs: Date.parse('2026-11-23T20:18:34Z') },
}

describe('the conflict that the CLI reports', () => {
  test('has user, host, process and time of the lock', () =>
    deepEqual(parseLockConflict([locked(1), first]), { kind: 'locks', locks: [firstLock] }))

  test('may have several locks, names of users with spaces, and times of another zone', () => {
    const url = 's3://states/.pulumi/locks/organization/shop/dev/0b41.json'
    const second = `${url}?region=us-east-1: created by CORP\\Ada L@build@laptop.corp (pid 7) at 2026-11-23T21:18:34+01:00`
    const lock = { url, user: 'CORP\\Ada L@build', host: 'laptop.corp', pid: 7, createdAtMs: firstLock.createdAtMs }
    deepEqual(parseLockConflict([locked(2), first, second]), { kind: 'locks', locks: [firstLock, lock] })
  })

  for (const [what, lines] of [
    ['is missing', [locked(2), first]],
    ['has no valid time', [locked(1), first.replace('2026-11-23T20:18:34Z', '2026-99-99T00:00:00Z')]],
    ['has no process', [locked(1), first.replace('(pid 24395)', '')]],
  ] as const)
    test(`has no locks if one of them ${what}`, () => deepEqual(parseLockConflict(lines), { kind: 'locks', locks: undefined }))

  test('is that of an update in Pulumi Cloud', () => {
    const lines = [
      '[409] Conflict: Another update is currently in progress.',
      'To learn more about possible reasons and resolution, visit https://www.pulumi.com/docs/support/troubleshooting/common-issues/update-conflicts/',
    ]
    deepEqual(parseLockConflict(lines), { kind: 'update', message: '[409] Conflict: Another update is currently in progress.' })
  })

  for (const [what, lines] of [
    ['nothing', []],
    ['another error', ['update failed']],
    ['another conflict', ['[409] Conflict: the organization has too many stacks']],
    ['an error of the program that looks like one', ['update failed', locked(1), first]],
  ] as const)
    test(`is none if the CLI reports ${what}`, () => equal(parseLockConflict(lines), undefined))
})
