/** The console's server in a process of its own, for `bench/console.ts`: sends its address, and changes rows at the rate of the last message. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StackRow } from '../../src/console/protocol/index.ts'
import { runRowOf, stackRowOf, startConsolePage } from '../../test/support/console-page.ts'

export type ServerMessage =
  /** Events in each second from now on. */
  { readonly kind: 'rate'; readonly eventsPerSecond: number } | { readonly kind: 'link' }

const [stacks = 10_000, flushIntervalMs = 250] = process.argv.slice(2).map(Number)
const tickMs = 20
const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-console-'))
const console_ = await startConsolePage(directory, { stacks, flushIntervalMs, limits: { maxAgeMs: 3_600_000 } })
const { tables } = console_.projections
for (let index = 0; index < 2_000; index++) tables.runs.set(runRowOf(index, Date.now()))

let eventsPerSecond = 0
let sent = 0
let due = 0
const timer = setInterval(() => {
  due += (eventsPerSecond * tickMs) / 1_000
  for (; due >= 1; due--) change(sent++)
}, tickMs)

/** Of three events two are of Runs in progress and one is of a Stack, as when Stacks are applied. New Runs replace old ones. */
function change(number: number): void {
  const nowMs = Date.now()
  if (number % 3 === 0) {
    const index = (number * 7919) % stacks
    const row: StackRow = { ...stackRowOf(index, nowMs), resources: number % 1_000, sinceMs: nowMs }
    tables.stacks.set(row)
    return
  }
  const index = number % 2_000
  const row = runRowOf(index, nowMs)
  const name = `${row.name}-${Math.floor(number / 2_000)}`
  tables.runs.delete(`${row.namespace}/${row.name}-${Math.floor(number / 2_000) - 1}`)
  tables.runs.set({ ...row, name, key: `${row.namespace}/${name}` })
}

process.on('message', (message: ServerMessage) => {
  if (message.kind === 'rate') eventsPerSecond = message.eventsPerSecond
  else process.send?.({ link: console_.link() })
})
process.on('disconnect', async () => {
  clearInterval(timer)
  await console_.close()
  rmSync(directory, { recursive: true, force: true })
  process.exit(0)
})
process.send?.({ url: console_.url })
