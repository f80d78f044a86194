import { equal, match } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { imageMissing } from '../test/cluster/oarlock-image.ts'

const folder = mkdtempSync(join(tmpdir(), 'oarlock-image-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function build(name: string, umask: string): string {
  const directory = join(folder, name)
  mkdirSync(directory)
  const command = `umask ${umask} && exec "$0" image/build.ts --output "${directory}/image.tar"`
  const env = { ...process.env, TMPDIR: directory, SOURCE_DATE_EPOCH: '1700000000' }
  const output = execFileSync('sh', ['-c', command, process.execPath], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env })
  return /sha256:[0-9a-f]{64}/.exec(output)?.[0] ?? ''
}

test('two builds with another umask and another temporary directory have the same digest', {
  skip: imageMissing() ?? false,
  timeout: 900_000,
}, () => {
  const digest = build('a', '022')
  match(digest, /^sha256:/)
  equal(build('b', '077'), digest)
})
