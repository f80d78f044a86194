import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { workerExitCodes } from '../../../execution/worker/index.ts'
import { crashOf, type WorkerExit } from './worker-crash.ts'

const exit = (fields: Partial<WorkerExit>) =>
  crashOf({ exitCode: undefined, signal: undefined, isStopped: false, hasOomKill: false, ...fields })

for (const [name, fields, expected] of [
  ['a segmentation fault', { signal: 'SIGSEGV' }, 'WorkerCrashed'],
  ['an abort, as by V8 when its heap is full', { signal: 'SIGABRT' }, 'WorkerCrashed'],
  ['an abort in a container', { exitCode: 134 }, 'WorkerCrashed'],
  ['an unexpected error', { exitCode: workerExitCodes.unexpected }, 'WorkerCrashed'],
  ['an OOM kill', { signal: 'SIGKILL', hasOomKill: true }, 'WorkerOutOfMemory'],
  ['an OOM kill in a container', { exitCode: 137, hasOomKill: true }, 'WorkerOutOfMemory'],
  ['SIGKILL by anyone', { signal: 'SIGKILL' }, undefined],
  ['SIGKILL by anyone in a container', { exitCode: 137 }, undefined],
  ['SIGTERM', { signal: 'SIGTERM' }, undefined],
  ['SIGTERM in a container', { exitCode: 143 }, undefined],
  ['SIGTERM while another process was killed for lack of memory', { signal: 'SIGTERM', hasOomKill: true }, undefined],
  ['an end that the driver asked for', { exitCode: 1, isStopped: true }, undefined],
  ['an eviction', {}, undefined],
  ['a clean end', { exitCode: workerExitCodes.ok }, undefined],
  ['a fenced worker', { exitCode: workerExitCodes.fenced }, undefined],
  ['an invalid setting', { exitCode: workerExitCodes.invalidSetting }, undefined],
  ['a failed registration', { exitCode: workerExitCodes.notRegistered }, undefined],
  ['a rejected credential', { exitCode: workerExitCodes.accessDenied }, undefined],
  ['no supervisor', { exitCode: workerExitCodes.supervisorUnavailable }, undefined],
  ['a full disk', { exitCode: workerExitCodes.systemError }, undefined],
] as const)
  test(`${name} is ${expected === undefined ? 'no crash' : `a crash: ${expected}`}`, () => equal(exit(fields), expected))
