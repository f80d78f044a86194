import { deepEqual, equal, match } from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { configMapResource } from '../../client/index.ts'
import { startTestServer, type TestServer } from '../../testing/index.ts'
import type { Log } from '../../util/log.ts'
import { controller } from '../controller.ts'
import { Manager } from '../manager.ts'
import { differenceOf, operatorReportOf, parseOperatorReport } from './operator-report.ts'

const settings = { slots: 2, leaseDurationMs: 3_000, renewDeadlineMs: 1_500, retryPeriodMs: 300 }

let api: TestServer
const managers: Manager[] = []

before(async () => {
  api = await startTestServer()
})
after(() => api.close())
afterEach(async () => {
  await Promise.all(managers.splice(0).map(manager => manager.stop({ graceMs: 500 })))
})

async function start(controllers: string[], name: string, options: object = {}): Promise<{ manager: Manager; errors: object[] }> {
  const errors: object[] = []
  const ignore = () => undefined
  const error = (fields: object) => void ('members' in fields && errors.push(fields))
  const log: Log = { debug: ignore, info: ignore, warn: ignore, error, child: () => log }
  const manager = new Manager({ client: api.client, log, shards: { name, namespace: 'default', ...settings, ...options } })
  managers.push(manager)
  for (const controllerName of controllers)
    manager.add(controller({ name: controllerName, for: configMapResource, reconcile: async () => undefined }))
  await manager.start()
  return { manager, errors }
}

const reasonsOf = ({ manager }: { manager: Manager }) => manager.readyz().reasons.join()

test('members with other settings, or without a common controller, belong to another operator', () => {
  const own = operatorReportOf(settings, ['b', 'a'])
  deepEqual(parseOperatorReport(JSON.parse(JSON.stringify(own))), own)
  equal(differenceOf(own, operatorReportOf(settings, ['c', 'a'])), undefined)
  equal(differenceOf(own, operatorReportOf(settings, [])), undefined)
  equal(
    differenceOf(own, operatorReportOf(settings, ['c'])),
    'runs the controllers c, this process a, b: each operator needs a ring of its own',
  )
  match(
    differenceOf(own, operatorReportOf({ ...settings, leaseDurationMs: 4_000 }, ['a'])) ?? '',
    /^has leaseDurationMs 4000, .*, this process has leaseDurationMs 3000, /,
  )
})

test('what is no report of an operator is undefined', () => {
  const many = Array.from({ length: 101 }, (_, index) => `c${index}`)
  for (const value of [
    undefined,
    null,
    1,
    {},
    { settings: 'a' },
    { settings: 'a', controllers: [1] },
    { settings: 'a', controllers: many },
  ])
    equal(parseOperatorReport(value), undefined)
})

test('two operators with one ring name are not ready and log an error once, until one of them stops', async () => {
  const boats = await start(['boats'], 'shared')
  const cars = await start(['cars'], 'shared')
  const want = /the ring has members of another operator: the member .* of slot \d runs the controllers/
  for (const operator of [boats, cars]) await eventually(() => want.test(reasonsOf(operator)), 'a reason')
  await cars.manager.stop({ graceMs: 500 })
  await eventually(() => reasonsOf(boats) === '', 'ready again')
  deepEqual([boats.errors.length, cars.errors.length], [1, 1])
})

test('two versions of one operator share a ring while it is updated, and other durations are reported', async () => {
  const before = await start(['boats'], 'updated')
  const update = await start(['boats', 'cars'], 'updated')
  await eventually(() => [before, update].every(({ manager }) => manager.shards?.counts().active === 512), 'two halves')
  deepEqual([reasonsOf(before), reasonsOf(update)], ['', ''])
  const standby = await start(['boats'], 'updated', { leaseDurationMs: 4_000 })
  await eventually(() => /has leaseDurationMs 3000, .* leaseDurationMs 4000/.test(reasonsOf(standby)), 'a reason')
})
