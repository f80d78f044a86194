import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createScenario } from './simulation/scenario.testing.ts'

type Command = string

const worker = fc.constantFrom('w1', 'w2', 'w3')
const command = fc.oneof<fc.Arbitrary<Command>[]>(
  fc.nat(3).map(count => `runs ${count + 1} ns=a duration=7s`),
  fc.nat(3).map(count => `runs ${count + 1} ns=b pool=p duration=5s`),
  fc.nat(2).map(count => `place ${count + 1} ns=a duration=7s`),
  fc.nat(2).map(count => `place ${count + 1} ns=b pool=p duration=5s`),
  fc.integer({ min: 1, max: 15 }).map(seconds => `advance ${seconds}s`),
  fc.integer({ min: 1, max: 15 }).map(seconds => `advance ${seconds}s`),
  worker.map(name => `pause ${name}`),
  worker.map(name => `resume ${name}`),
  fc.constantFrom('hold AssignRun', 'hold PatchRunStatus', 'hold ConfirmLoss', 'hold DeleteWorker', 'hold CreateRun', 'send'),
  fc.constantFrom('refuse 1', 'refuse 2'),
  fc.constantFrom('crash', 'lead'),
)

test('property: under crashes, takeovers, silent workers and late writes no Run is assigned twice, no suspect gets a Run, no pool exceeds its maximum, and every Run ends', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 30 }), commands => {
      const scenario = createScenario()
      const lines: string[] = []
      const play = (line: string) => {
        const [name = '', ...rest] = line.split(' ')
        const options = Object.fromEntries(rest.filter(word => word.includes('=')).map(word => word.split('=') as [string, string]))
        void scenario.play(
          name,
          rest.filter(word => !word.includes('=')),
          options,
        )
        lines.push(...scenario.takeLines())
      }
      const gone = () => new Set(lines.flatMap(line => line.match(/DeleteWorker (\S+)/)?.[1] ?? []))
      const start = ['lease 10s', 'pool p mode=Process max=2 startup=3s', 'workers 3']
      for (const line of start) play(line)
      for (const line of commands) {
        const [name, target = ''] = line.split(' ')
        // A worker that was declared lost exits.
        if ((name === 'pause' || name === 'resume') && gone().has(target)) continue
        play(line)
      }
      for (const line of ['send', 'lead', 'worker spare slots=20', 'send', 'advance 10m']) play(line)
      deepEqual(
        lines.filter(line => line.includes('VIOLATION')),
        [],
      )
      const before = lines.length
      play('status')
      const unfinished = lines.slice(before).filter(line => / (Queued|Assigned|Applying)( on|$)/.test(line))
      deepEqual(unfinished, [])
    }),
    { numRuns: 200 },
  )
})
