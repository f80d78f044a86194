import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { withIsolatedGit } from './git-command.ts'

const cacheDir = mkdtempSync(join(tmpdir(), 'oarlock-git-'))
after(() => rmSync(cacheDir, { recursive: true, force: true }))

test('stopping one call does not stop another call of the same process', async () => {
  const url = { kind: 'file', url: 'file:///none', path: '/none' } as const
  const marker = (name: string) => join(cacheDir, name)
  const wait = (name: string, signal: AbortSignal) =>
    withIsolatedGit({ url, signal, cacheDir }, git =>
      git(['-c', `alias.wait=!touch '${marker(name)}'; until [ -e '${marker('go')}' ]; do sleep 0.02; done`, 'wait']),
    )
  const stop = new AbortController()
  const stopped = wait('stopped', stop.signal)
  const other = wait('other', new AbortController().signal)
  await eventually(async () => existsSync(marker('stopped')) && existsSync(marker('other')), 'both calls to start')
  stop.abort()
  await assert.rejects(stopped, { name: 'AbortError' })
  writeFileSync(marker('go'), '')
  assert.equal((await other).exitCode, 0)
})
