import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findSandboxAccount } from './sandbox-account.ts'

const passwd = 'root:x:0:0:root:/root:/bin/bash\n'
const find = (files: Record<string, string>) => findSandboxAccount(path => files[path] ?? '')

test('root uses the account for sandboxed programs, or else its first subordinate ids', () => {
  const subordinate = { '/etc/passwd': passwd, '/etc/subuid': 'x:1:1\nroot:100000:65536\n', '/etc/subgid': '#\n0:200000:65536\n' }
  assert.deepEqual(find(subordinate), { uid: 100_000, gid: 200_000 })
  const account = `${passwd}oarlock-sandbox:x:999:995::/nonexistent:/usr/sbin/nologin\n`
  assert.deepEqual(find({ ...subordinate, '/etc/passwd': account }), { uid: 999, gid: 995 })
})

for (const { name, files, reason } of [
  { name: 'neither account nor subordinate ids', files: { '/etc/passwd': passwd }, reason: /the worker is root.*useradd/ },
  { name: 'only subordinate uids', files: { '/etc/subuid': 'root:100000:65536' }, reason: /the worker is root/ },
  { name: 'an account with uid 0', files: { '/etc/passwd': 'oarlock-sandbox:x:0:995::/:/bin/sh' }, reason: /other than 0/ },
  { name: 'an account with gid 0', files: { '/etc/passwd': 'oarlock-sandbox:x:999:0::/:/bin/sh' }, reason: /other than 0/ },
  { name: 'an empty range', files: { '/etc/subuid': 'root:100000:0', '/etc/subgid': 'root:100000:0' }, reason: /the worker is root/ },
]) {
  test(`rejects ${name}`, () => assert.throws(() => find(files as Record<string, string>), reason))
}
