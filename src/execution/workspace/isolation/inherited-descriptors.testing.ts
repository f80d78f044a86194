/** A worker whose parent left a file open: prints what the descriptors of a program of its Run are. Arguments: level, parent of the Run's directory. */
import { randomUUID } from 'node:crypto'
import type { IsolationLevel } from '../../../api/index.ts'
import { createProcessRunner } from '../process/index.ts'
import { createRunDirectory } from '../run-directory.ts'
import { probeIsolation, RunIsolation } from './index.ts'

const [level, parent] = process.argv.slice(2) as [IsolationLevel, string]
const runUid = randomUUID()
const directory = await createRunDirectory(parent, runUid)
const probe = await probeIsolation(level)
const options = { level, network: 'Host' as const, limits: {}, runUid, directory, readable: [], onExceeded: () => {} }
const isolation = new RunIsolation({ ...(probe.available && probe), ...options })
const runner = createProcessRunner({ runUid, ...directory, wrapCommand: isolation.wrapCommand })
const { signal } = new AbortController()
const list = 'for each in /proc/self/fd/*; do readlink $each; done'
await runner({ command: 'sh', args: ['-c', list], cwd: directory.work, env: {}, signal, onStdoutLine: line => console.log(line) })
await isolation.close()
await directory.remove()
