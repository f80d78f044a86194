import { Gauge, type Registry } from 'prom-client'
import type { Stack } from '../../api/index.ts'
import { boundedLabelValues } from '../../controllers/dispatch/index.ts'

/** Further values are counted as `other` (invariant 10): users choose namespaces, and engines some reasons. */
const maxNamespaces = 200
const maxReasons = 100

const conditionLabels = ['namespace', 'condition', 'status', 'reason'] as const

/**
 * Registers metrics of Stacks by namespace. A Stack is no label: thousands of Stacks would be as many series. Times are timestamps, not ages,
 * so that they stay correct between scrapes. All are computed at each scrape.
 */
export function registerStackMetrics(registry: Registry, stacks: () => readonly Pick<Stack, 'metadata' | 'status'>[]): void {
  const registers = [registry]
  const boundedNamespace = boundedLabelValues(maxNamespaces)
  const boundedReason = boundedLabelValues(maxReasons)
  const namespaceOf = ({ metadata }: Pick<Stack, 'metadata'>) => boundedNamespace(metadata.namespace ?? '')
  const conditions = function* () {
    for (const stack of stacks()) {
      const namespace = namespaceOf(stack)
      for (const { type, status, reason, lastTransitionTime } of stack.status?.conditions ?? [])
        yield {
          labels: { namespace, condition: type, status, reason: boundedReason(reason) },
          seconds: Date.parse(lastTransitionTime) / 1_000,
        }
    }
  }
  new Gauge({
    name: 'oarlock_stacks',
    help: 'Stacks.',
    labelNames: ['namespace'],
    registers,
    collect() {
      this.reset()
      for (const stack of stacks()) this.inc({ namespace: namespaceOf(stack) })
    },
  })
  new Gauge({
    name: 'oarlock_stack_conditions',
    help: 'Stacks that have a condition with this status and reason.',
    labelNames: conditionLabels,
    registers,
    collect() {
      this.reset()
      for (const { labels } of conditions()) this.inc(labels)
    },
  })
  new Gauge({
    name: 'oarlock_stack_condition_oldest_timestamp_seconds',
    help: 'Unix time since when a Stack has had a condition with this status, of the Stack that has had it longest.',
    labelNames: conditionLabels,
    registers,
    collect() {
      this.reset()
      setExtremes(this, conditions(), Math.min)
    },
  })
  new Gauge({
    name: 'oarlock_stack_last_apply_timestamp_seconds',
    help: 'Unix time of the last successful Apply of any Stack.',
    labelNames: ['namespace'],
    registers,
    collect() {
      this.reset()
      const applies = stacks().flatMap(stack => {
        const at = stack.status?.applied?.at
        return at === undefined ? [] : [{ labels: { namespace: namespaceOf(stack) }, seconds: Date.parse(at) / 1_000 }]
      })
      setExtremes(this, applies, Math.max)
    },
  })
}

/** Sets the smallest or the largest of the values with equal labels. */
function setExtremes<Label extends string>(
  gauge: Gauge<Label>,
  values: Iterable<{ labels: Record<Label, string>; seconds: number }>,
  choose: (a: number, b: number) => number,
): void {
  const chosen = new Map<string, { labels: Record<Label, string>; seconds: number }>()
  for (const { labels, seconds } of values) {
    if (Number.isNaN(seconds)) continue
    const key = JSON.stringify(labels)
    chosen.set(key, { labels, seconds: choose(chosen.get(key)?.seconds ?? seconds, seconds) })
  }
  for (const { labels, seconds } of chosen.values()) gauge.set(labels, seconds)
}
