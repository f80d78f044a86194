/** kubectl behind a gateway while home is killed, and when it is back. */
import { equal, match } from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { partitionResource } from '../src/gateway/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { skipWithoutClient } from './clients/clients.ts'
import { kubectlFor } from './clients/kubectl.ts'
import { eventually } from './support/eventually.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

const stack = (namespace: string, name: string) =>
  JSON.stringify({
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Stack',
    metadata: { namespace, name },
    spec: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
  })

describe('kubectl while home is killed', { skip: skipWithoutClient('kubectl'), timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  let installation: Installation
  let client: Client
  let caches = 0
  /** Each has an empty discovery cache. */
  const newKubectl = () => kubectlFor({ kubeconfig: installation.kubeconfig, directory: join(directory, `cache-${caches++}`) })

  before(async () => {
    ;({ installation, client } = await fixture.start({
      tenantPartitions: ['t1', 't2'],
      resourcePartitions: ['r1'],
      tenants: { acme: 't1', umbrella: 't2' },
    }))
    const copies = async () => {
      const { items } = await client.resource(partitionResource).listAll({})
      return items.filter(({ status }) => isConditionTrue(status?.conditions, 'KindsMatch')).length === 3
    }
    await eventually(copies, 'the comparison of kinds', 60_000)
    for (const namespace of ['acme', 'umbrella']) await newKubectl().output('apply -f -', stack(namespace, 'before'))
  })
  after(() => fixture.stop())

  /** `kubectl get -A -w` with the lines that it has printed. */
  function watch(...args: string[]): { readonly child: ChildProcessWithoutNullStreams; readonly output: () => string } {
    const child = spawn('kubectl', ['get', 'stacks', '-A', '-w', '--no-headers', ...args], { env: { ...process.env, ...newKubectl().env } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', chunk => (output += chunk))
    return { child, output: () => output }
  }

  test('get, apply and explain work with an empty cache, and a watch over all namespaces continues when home is back', async t => {
    const watches = [watch(), watch('-o', 'name')]
    t.after(async () => {
      for (const { child } of watches) {
        child.kill()
        if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
      }
    })
    for (const { output } of watches) await eventually(() => (output().match(/before/g) ?? []).length === 2, 'the Stacks that exist')
    // A watch that is not open yet would be answered with 503.
    await newKubectl().output('apply -f -', stack('acme', 'watched'))
    for (const { output } of watches) await eventually(() => /watched/.test(output()), 'the watches')
    const home = installation.role('home')
    await home.end('SIGKILL')
    equal(await newKubectl().output('get stacks -n acme -o name'), 'stack.oarlock.dev/before\nstack.oarlock.dev/watched\n')
    equal(await newKubectl().output('apply -n umbrella -f -', stack('umbrella', 'meanwhile')), 'stack.oarlock.dev/meanwhile created\n')
    match(await newKubectl().output('explain stacks.spec.engine'), /KIND: +Stack/)
    home.restart()
    await home.until(/^ready: /m)
    await newKubectl().output('apply -n acme -f -', stack('acme', 'afterwards'))
    for (const { output, child } of watches)
      await eventually(() => /meanwhile(.|\n)*afterwards/.test(output()) || child.exitCode !== null, 'the events', 30_000)
    for (const { output, child } of watches) {
      equal(child.exitCode, null, output())
      equal((output().match(/before|Expired/g) ?? []).length, 2, output())
    }
  })
})
