import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { decideStep, leftSeconds } from '../examples/kyma/decide-step.ts'
import { defaultComponents } from '../examples/kyma/kinds.ts'
import { Renderer } from '../examples/kyma/renderer.ts'
import { parseBackoff } from '../examples/kyma/settings.ts'
import { newCounters, type Report, sumReports } from '../examples/kyma/stats.ts'

const at = (ms: number) => new Date(ms).toISOString()

test('a component goes through its steps at the expected times', () => {
  const walk = (name: string) => {
    const steps: string[] = []
    let status: { status: string; lastReconciliation: string } | undefined
    let nowMs = 1_000_000
    for (;;) {
      const decision = decideStep(name, status, nowMs)
      if (decision.kind === 'done') return steps
      if (decision.kind === 'wait') {
        nowMs += decision.ms
        continue
      }
      steps.push(`${(nowMs - 1_000_000) / 1_000} ${decision.step}`)
      status = { status: decision.step, lastReconciliation: at(nowMs) }
    }
  }
  deepEqual(walk('ory'), ['0 pending', '1 started', '4 failing', '7 retrying', '10 success'])
  equal(walk('service-catalog-addons').at(-1), '67 success')
  deepEqual(decideStep('ory', { status: 'nonsense' }, 0), { kind: 'write', step: 'pending', nextInMs: 1_000 })
  deepEqual(decideStep('ory', { status: 'started', lastReconciliation: 'nonsense' }, 0), {
    kind: 'write',
    step: 'failing',
    nextInMs: 3_000,
  })
  // A clock that stepped back delays by one step at most.
  deepEqual(decideStep('ory', { status: 'started', lastReconciliation: at(60_000) }, 0), { kind: 'wait', ms: 3_000 })
  deepEqual(
    [undefined, 'pending', 'started', 'retrying', 'success'].map(step => leftSeconds(step, 'ory')),
    [10, 10, 9, 3, 0],
  )
})

test('there are 18 components by default, and the slowest takes 67 s', () => {
  equal(defaultComponents.length, 18)
  equal(Math.max(...defaultComponents.map(({ name }) => leftSeconds(undefined, name))), 67)
})

test('settings are parsed, and a chart is rendered once per digest', () => {
  deepEqual(parseBackoff('1s..1000s'), { baseDelayMs: 1_000, maxDelayMs: 1_000_000 })
  deepEqual(parseBackoff('5ms..30'), { baseDelayMs: 5, maxDelayMs: 30_000 })
  throws(() => parseBackoff('fast'), /--backoff must be MIN..MAX/)
  throws(() => parseBackoff('9s..1s'), /MAX not below it/)
  const renderer = new Renderer()
  const values = { componentName: 'ory', chartLocation: 'charts/ory', version: '1', namespace: 'kyma-system' }
  const manifests = renderer.render(values)
  equal(renderer.render({ ...values }), manifests)
  equal(manifests.length, 5)
})

test('the report of several replicas is their sum, and a killed one counts with what it did', () => {
  const report = (fields: Partial<Report>): Report => ({
    ...{ type: 'report', ...newCounters(), kymas: 0, components: 0, succeeded: 0, queueDepth: 0, delayed: 0 },
    ...{ rssMb: 100, peakRssMb: 120, cpuSeconds: 1, errors: 0, lastError: undefined, renderedKb: 0, ...fields },
  })
  const replicas = [report({ creates: 3, succeeded: 2, lastSuccessAt: 7 }), report({ creates: 4, succeeded: 1, lastError: 'timeout' })]
  const sum = sumReports(replicas, [report({ creates: 10, succeeded: 9, peakRssMb: 300, lastSuccessAt: 5 })])
  const { creates, succeeded, rssMb, peakRssMb, cpuSeconds, lastSuccessAt, lastError } = sum
  deepEqual([creates, succeeded, rssMb, peakRssMb, cpuSeconds, lastSuccessAt, lastError], [17, 3, 200, 300, 3, 7, 'timeout'])
})
