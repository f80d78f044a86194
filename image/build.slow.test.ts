import { equal, match } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { buildOarlockImage, imageDigest, imageMissing, tofuEngine } from '../test/cluster/oarlock-image.ts'

const folder = mkdtempSync(join(tmpdir(), 'oarlock-image-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('a build with another umask and another temporary directory has the digest of the image that other tests use', {
  skip: imageMissing() ?? false,
  timeout: 900_000,
}, () => {
  const command = `umask 077 && exec "$0" image/build.ts --output "${folder}/image.tar" --engine ${tofuEngine}`
  const env = { ...process.env, TMPDIR: folder, SOURCE_DATE_EPOCH: '0' }
  const output = execFileSync('sh', ['-c', command, process.execPath], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env })
  const digest = /sha256:[0-9a-f]{64}/.exec(output)?.[0] ?? ''
  match(digest, /^sha256:/)
  equal(digest, imageDigest(buildOarlockImage()))
})
