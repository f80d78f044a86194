import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('package-lock.json has an entry for every optional package of every platform, as `npm ci` demands', async () => {
  await promisify(execFile)(process.execPath, ['scripts/complete-lock-file.mjs', '--check'])
})
