/** What Runs report about the packages of their program, with the real Pulumi CLI, which PULUMI_BIN names, and npm. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { dirname } from 'node:path'
import { describe, test } from 'node:test'
import { useOarlock } from './support/oarlock-fixture.ts'
import { runOarlock } from './support/run-program.ts'
import { isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
const skip = pulumi === undefined && 'PULUMI_BIN is not set'

const files = {
  'Pulumi.yaml': 'name: packages\nruntime: { name: nodejs, options: { typescript: false } }\n',
  'package.json': '{"name":"packages","main":"index.js","dependencies":{"@pulumi/pulumi":"3.260.0"}}',
  'index.js': "exports.text = new (require('@pulumi/pulumi').Config)().require('text')",
}

describe('dependencies of Runs', { skip }, () => {
  const up = useOarlock({ env: { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}` } })
  const { dataDir, stacks } = up

  test('the first Run installs them, the next one gets them from the host and has their digest as its preference', async () => {
    await stacks.create('app', { engine: 'pulumi', source: { inline: { files } }, variables: { text: 'a' } })
    await stacks.until('app', 'Ready', isReady, 180_000)
    await stacks.patch('app', { spec: { variables: { text: 'b' } } })
    await stacks.until('app', 'changed', each => isReady(each) && each.status?.outputs?.text === 'b', 60_000)
    const [installing, cached] = await stacks.runsOf('app')
    const { digest = '', manager, source, installSeconds = 0, bytes = 0 } = installing?.status?.dependencies ?? {}
    deepEqual([manager, source, installing?.spec.dependencyDigest], ['npm', 'Installed', undefined])
    ok(bytes > 1_000_000, `${bytes} bytes`)
    equal(cached?.spec.dependencyDigest, digest)
    const { seconds = Number.NaN, ...found } = cached?.status?.dependencies ?? {}
    deepEqual(found, { digest, manager: 'npm', source: 'Cached', installSeconds, bytes })
    ok(seconds < installSeconds, `the Run had its packages after ${seconds} s, the install took ${installSeconds} s`)
    const { items } = JSON.parse((await runOarlock(['cache', 'list', '--data', dataDir, '-o', 'json'])).stdout)
    deepEqual(
      items.map((item: Record<string, unknown>) => [item.kind, item.digest, item.name, item.bytes]),
      [['Dependencies', digest, 'npm', bytes]],
    )
  })
})
