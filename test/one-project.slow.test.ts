/** As test/one-project.test.ts, with engine pulumi, the real CLI, which PULUMI_BIN names, and packages of the npm registry. */
import { deepEqual, equal } from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { GitRepository } from './support/git-repository.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { checkOneProject } from './support/one-project.ts'
import { StackFixture } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
const skip = pulumi === undefined && 'PULUMI_BIN is not set'

/** Allocates memory in the update, when a resource is in the state: the journal is open, and the lock is held. */
const program = `
const pulumi = require('@pulumi/pulumi')
const text = require('shared')
const megabytes = Number(new pulumi.Config().get('megabytes') || 0)
class Part extends pulumi.ComponentResource {
  constructor(name, options) {
    super('test:index:Part', name, {}, options)
    this.registerOutputs({ text })
  }
}
module.exports = async () => {
  const first = new Part('first')
  await new Promise(resolve => first.urn.apply(resolve))
  if (!pulumi.runtime.isDryRun() && megabytes > 0) {
    const ballast = Array.from({ length: megabytes }, () => Buffer.alloc(1e6, 1))
    await new Promise(resolve => setTimeout(() => resolve(ballast.length), 3000))
  }
  new Part('second', { dependsOn: first })
  return { text }
}
`

test('Stacks of one Pulumi program: one install, OutOfMemory during the update fails one Run, and no lock and no worker is left', {
  skip,
}, async t => {
  const dataDir = makeDataDir()
  t.after(() => removeDirectory(dataDir))
  const repository = new GitRepository(join(dataDir, 'project'))
  mkdirSync(join(repository.path, 'shared'))
  repository.commit({
    'Pulumi.yaml': 'name: one\nruntime: { name: nodejs, options: { typescript: false } }\n',
    'package.json': '{"name":"one","main":"index.js","dependencies":{"@pulumi/pulumi":"3.260.0","shared":"file:shared"}}',
    'shared/package.json': '{"name":"shared","version":"1.0.0"}',
    'shared/index.js': 'module.exports = "first"',
    'index.js': program,
  })
  const path = `${dirname(pulumi ?? '')}:${process.env.PATH}`
  const up = await startOarlock(dataDir, ['--allow-path', repository.path, '--max-workers', '3'], { PATH: path })
  await checkOneProject({
    ...{ up, repository, stackCount: 5, timeoutMs: 600_000 },
    spec: { engine: 'pulumi', source: {} },
    spendthrift: { megabytes: '1200' },
    memory: { limit: '1200Mi', raised: '2400Mi' },
    change: { 'shared/index.js': 'module.exports = "second"' },
  })
  const { items } = await new StackFixture(up.client).stacks.listAll({ namespace: 'default' })
  for (const { metadata, status } of items)
    deepEqual([status?.resources, status?.outputs], [2, { text: 'second' }], `${metadata.name}: ${JSON.stringify(status)}`)
  equal(await up.stop(), 0)
})
