/** A Run that prints far more than its log keeps, next to a Run of another Stack in the same process. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkerHarness, shell } from './support/worker-harness.ts'

const { execute, readLog } = createWorkerHarness()
const mebibyte = 2 ** 20
const printed = 2_048 * mebibyte

for (const { name, flood } of [
  { name: 'short lines', flood: `yes 'a line of output' | head -c ${printed}` },
  { name: 'one line', flood: `yes 'a line of output' | tr '\\n' x | head -c ${printed}` },
  { name: 'lines on stderr', flood: `yes 'a line of output' | head -c ${printed} >&2` },
])
  test(`a Run that prints 2 GiB in ${name} costs its worker little work and no memory, and reports why it failed`, async t => {
    const before = process.memoryUsage().rss
    let peak = before
    const sampling = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss)
    }, 20)
    t.after(() => clearInterval(sampling))
    const cpuBefore = process.cpuUsage()
    const noisy = execute(t, { stack: { command: { apply: shell(`${flood}; echo; echo first >&2; echo the reason >&2; exit 1`) } } })
    const neighbor = execute(t, { stack: { command: { apply: shell('echo "{\\"answer\\":{\\"value\\":42}}" > $OARLOCK_OUTPUTS') } } })
    equal((await neighbor).run.status?.phase, 'Succeeded')
    const { run } = await noisy
    const { status } = run
    deepEqual([status?.phase, status?.reason], ['Failed', 'ApplyFailed'], JSON.stringify(status))
    match(status?.message ?? '', /failed with exit code 1: the reason$/)
    // What was decoded and masked.
    const { bytes = 0, truncated } = status?.log ?? {}
    const cpu = process.cpuUsage(cpuBefore)
    t.diagnostic(
      `decoded ${Math.round(bytes / mebibyte)} MiB, ${Math.round((cpu.user + cpu.system) / 1_000)} ms of CPU, ${Math.round((peak - before) / mebibyte)} MiB`,
    )
    ok(bytes < printed / 8, `${bytes} bytes were decoded`)
    equal(truncated, true)
    const [, dropped] = /limit of 10 MiB reached, (\d+) more bytes dropped\n$/.exec(await readLog(run)) ?? []
    ok(Number(dropped) > printed - 64 * mebibyte, `${dropped} bytes were dropped`)
    ok(peak - before < 256 * mebibyte, `the process grew by ${Math.round((peak - before) / mebibyte)} MiB`)
  })
