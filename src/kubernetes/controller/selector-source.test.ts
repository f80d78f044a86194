import { deepEqual, equal, throws } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { configMapResource } from '../client/index.ts'
import { startTestServer } from '../testing/index.ts'
import { silentLog } from '../util/log.ts'
import { ChangingSelector, Manager } from './index.ts'

async function start(t: TestContext, selector: ChangingSelector) {
  const { client, close } = await startTestServer()
  const manager = new Manager({ client, log: silentLog })
  const informer = manager.informer(configMapResource, { namespace: 'default', selector })
  const changes: string[] = []
  informer.onChange({ changed: ({ type, object }) => void changes.push(`${type} ${object.metadata.name}`) })
  t.after(async () => {
    await manager.stop({ graceMs: 100 })
    await close()
  })
  const configMaps = client.resource(configMapResource)
  for (const [name, bucket] of [
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
  ] as const)
    await configMaps.create({ metadata: { name, namespace: 'default', labels: { bucket } } })
  const names = () => informer.list().map(({ metadata }) => metadata.name)
  const has = async (...expected: string[]) => await eventually(() => names().sort().join() === expected.join(), expected.join())
  return { manager, informer, changes, has, configMaps }
}

test('a cache has what its selector selects, and after a change drops the rest and gets what is new', async t => {
  const selector = new ChangingSelector('bucket in (1,2)')
  const { manager, informer, changes, has, configMaps } = await start(t, selector)
  await manager.start()
  await has('a', 'b')
  changes.length = 0
  selector.set('bucket in (2,3)')
  await has('b', 'c')
  deepEqual(changes, ['deleted a', 'added c'])
  equal(informer.isFilled, true)
  await configMaps.patch('b', { data: { x: '1' } }, { type: 'merge', namespace: 'default' })
  await configMaps.patch('a', { data: { x: '1' } }, { type: 'merge', namespace: 'default' })
  await eventually(() => informer.get('default/b')?.data?.x === '1', 'the change of b')
  await configMaps.patch('c', { metadata: { labels: { bucket: '9' } } }, { type: 'merge', namespace: 'default' })
  await has('b')
  selector.set('bucket')
  await has('a', 'b', 'c')
})

test('without a value a cache is empty and not filled, and its manager waits', async t => {
  const selector = new ChangingSelector()
  const { manager, informer, has } = await start(t, selector)
  const starting = manager.start()
  await new Promise(resolve => setTimeout(resolve, 50))
  deepEqual([informer.size, informer.hasSynced], [0, false])
  selector.set('bucket=1')
  await starting
  await has('a')
})

test('those who ask with one selector share a cache, and others have their own', async t => {
  const selector = new ChangingSelector('bucket=1')
  const { manager, informer } = await start(t, selector)
  equal(manager.informer(configMapResource, { namespace: 'default', selector }), informer)
  const other = manager.informer(configMapResource, { namespace: 'default', selector: new ChangingSelector('bucket=1') })
  equal(other === informer, false)
  throws(() => manager.informer(configMapResource, { labelSelector: 'x=1', selector: new ChangingSelector() }), /use one of them/)
  await manager.start()
})
