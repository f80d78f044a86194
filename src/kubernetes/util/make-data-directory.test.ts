import { equal, match, throws } from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeDataDirectory, UnusableDirectoryError } from './make-data-directory.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-directory-'))
after(() => rmSync(base, { recursive: true, force: true }))
const modeOf = (path: string) => statSync(path).mode & 0o7777

test('a new directory has mode 0700', () => {
  const path = join(base, 'a', 'new')
  equal(makeDataDirectory(path), undefined)
  equal(modeOf(path), 0o700)
})

for (const [mode, want] of [
  [0o755, 0o700],
  [0o777, 0o700],
  [0o720, 0o700],
  [0o1777, 0o1700],
] as const)
  test(`removes the access of other users from an own directory with mode ${mode.toString(8)}`, () => {
    const path = join(base, mode.toString(8))
    makeDataDirectory(path)
    chmodSync(path, mode)
    match(makeDataDirectory(path) ?? '', /other users could access .*its mode is now 0700/)
    equal(modeOf(path), want)
    equal(makeDataDirectory(path), undefined)
  })

for (const mode of [0o777, 0o755])
  test(`rejects a directory of another user with mode ${mode.toString(8)}, and does not change it`, () => {
    const path = join(base, 'foreign')
    makeDataDirectory(path)
    chmodSync(path, mode)
    throws(
      () => makeDataDirectory(path, 4_242),
      (error: unknown) => {
        match((error as UnusableDirectoryError).message, /other users can access .*foreign \(mode 07[57][57], owner \d+\)/)
        match((error as UnusableDirectoryError).hint, /chmod 700 .* or choose a subdirectory/)
        return error instanceof UnusableDirectoryError
      },
    )
    equal(modeOf(path), mode)
  })
