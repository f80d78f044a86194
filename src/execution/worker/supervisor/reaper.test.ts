import { deepEqual } from 'node:assert/strict'
import { closeSync, constants, mkdtempSync, openSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { Reaper } from './reaper.ts'

test('a reaper that is canceled before its pipe is opened leaves no file open', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-reaper-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const fifo = join(directory, 'alive')
  const armed: string[] = []
  const reaper = new Reaper({ fifo, runUid: 'a', cgroup: undefined, onArmed: () => armed.push('canceled') })
  // It has reported that it reads the pipe, and the report is not read yet: this thread does not return to its event loop.
  let writer: number | undefined
  while (writer === undefined) writer = tryOpenForWriting(fifo)
  reaper.cancel()
  closeSync(writer)
  const last = new Reaper({ fifo, runUid: 'a', cgroup: undefined, onArmed: () => armed.push('last') })
  t.after(() => last.cancel())
  await eventually(() => armed.length > 0, 'the other reaper to be armed')
  deepEqual(armed, ['last'])
  const isOpen = () => readdirSync('/proc/self/fd').filter(fd => linkOf(fd) === fifo).length
  deepEqual(isOpen(), 1)
  last.cancel()
  deepEqual(isOpen(), 0)
})

function linkOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}

/** Undefined until a process reads the pipe. */
function tryOpenForWriting(fifo: string): number | undefined {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}
