import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { controllerFiguresOf } from '../../api/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { metricsOn } from '../../kubernetes/controller/metrics.ts'
import { PublishedFigures } from './published-figures.ts'

const namesIn = (annotations: Readonly<Record<string, string>>) =>
  controllerFiguresOf({ metadata: { name: 'oarlock-controller', annotations } as never }).map(({ name }) => name)

test('each Lease has the controllers that it grants, as they were some seconds ago', async () => {
  const registry = new Registry()
  const metrics = await metricsOn(registry)
  metrics.controller('stack', 4)
  metrics.controller('disruption', 1)
  const figures = new PublishedFigures(registry, silentLog)
  const isLeaders = (name: string) => name === 'disruption'
  deepEqual(namesIn(figures.annotations(isLeaders)), [])
  await setImmediate()
  metrics.controller('later', 1)
  deepEqual(namesIn(figures.annotations(isLeaders)), ['disruption'])
  deepEqual(namesIn(figures.annotations(name => !isLeaders(name))), ['stack'])
})

test('metrics that cannot be read are logged, and what was read before stays', async () => {
  const registry = new Registry()
  registry.getSingleMetric = () => {
    throw new Error('no metrics')
  }
  const warnings: string[] = []
  const figures = new PublishedFigures(registry, { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) })
  deepEqual(namesIn(figures.annotations(() => true)), [])
  await setImmediate()
  deepEqual(warnings, ['the metrics of the controllers cannot be read: consoles show older ones'])
})
