/** Controllers and stores work for the partition that they are meant for. Each role is a process of `oarlock`. */
import { equal, match } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { createClient, leaseResource } from '../src/kubernetes/client/index.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

describe('roles of a partition', { timeout: 180_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  before(async () => {
    ;({ installation } = await fixture.start({ tenantPartitions: ['t1', 't2'] }))
  })
  after(() => fixture.stop())
  const failure = async (...args: string[]) =>
    await installation.run(...args).then(
      () => 'it did not fail',
      error => String(error.stderr),
    )
  const kubeconfigOf = (name: string) => ['--kubeconfig', installation.partitionKubeconfig(name)]
  const any = ['--listen', '127.0.0.1:0']
  const controller = (...more: string[]) => ['controller', ...any, '--health-address', '127.0.0.1:0', '--data', 'controller', ...more]
  const workers = () => ['--workers-kubeconfig', installation.kubeconfig]

  test('controllers without --partition do not start on a partition, nor on home', async () => {
    for (const name of ['t1', 'home'])
      match(
        await failure(...controller(...kubeconfigOf(name))),
        new RegExp(
          `is partition "${name}" of several behind a gateway, and no partition is named\\n {2}hint: start with --partition ${name} --workers-kubeconfig`,
        ),
      )
  })

  test('controllers of one partition do not start on another one, and do not lead there', async () => {
    const wrong = await failure(...controller(...kubeconfigOf('t2'), ...workers(), '--partition', 't1'))
    match(wrong, /is partition "t2", and not "t1"\n {2}hint: choose the kubeconfig of partition "t1", or --partition t2/)
    const client = await createClient({ kubeconfig: installation.partitionKubeconfig('t2') })
    try {
      const { items } = await client.resource(leaseResource).list({ namespace: 'oarlock-system' })
      equal(
        items.some(({ metadata }) => metadata.name.includes('controller')),
        false,
      )
    } finally {
      await client.close()
    }
  })

  test('controllers and stores do not start on the gateway, which reports that it is home', async () => {
    const gateway = ['--kubeconfig', installation.kubeconfig, ...workers()]
    const rejected = /the server https:\S+ is a gateway, .*\n {2}hint: choose the kubeconfig of the API server of one partition/
    for (const name of ['home', 't1']) match(await failure(...controller(...gateway, '--partition', name)), rejected)
    match(await failure('stores', ...gateway, '--data', 'stores-gateway', ...any), rejected)
  })

  test('stores without states do not start on a partition that is not named, or on another one, and leave it to its own', async () => {
    const stores = (name: string, ...named: string[]) => ['stores', ...kubeconfigOf(name), ...workers(), ...named, '--data', 'new', ...any]
    match(
      await failure(...stores('t2')),
      /is partition "t2" of several behind a gateway, and no partition is named\n {2}hint: start with --partition t2 /,
    )
    match(
      await failure(...stores('t2', '--partition', 't1')),
      /is partition "t2", and not "t1"\n {2}hint: choose the kubeconfig of partition "t1", or --partition t2/,
    )
    const role = installation.add('stores-new', stores('t2', '--partition', 't2'))
    await role.until(/^ready: /m)
    await role.end()
  })

  test('stores with the states of one partition do not start on another one', async () => {
    const stores = (name: string) => ['stores', ...kubeconfigOf(name), ...workers(), '--data', 'stores-t1', ...any]
    const t1 = installation.add('stores-t1', [...stores('t1'), '--partition', 't1'])
    await t1.until(/^ready: /m)
    await t1.end()
    match(await failure(...stores('t2'), '--partition', 't2'), /has the states of partition "t1", and --partition is "t2"/)
    match(
      await failure(...stores('t2')),
      /has the states of partition "t1", and the server https:\S+ is "t2"\n {2}hint: choose the kubeconfig of partition "t1"/,
    )
    t1.restart()
    await t1.until(/^ready: /m)
  })
})
