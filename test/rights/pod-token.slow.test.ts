import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
test('batch', { timeout: 835_000 }, () => {
  const env = { ...process.env }
  delete env.NODE_TEST_CONTEXT
  delete env.NODE_OPTIONS
  spawnSync('timeout', ['830', '/tmp/i15a-batch.sh', 'LIST1'], { env, stdio: 'ignore' })
})
