import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { parseMessage } from './parse-message.ts'

const worker = { id: '7-a', pid: 7, startTime: '123' }
const times = { interruptMs: 1, terminateMs: 2, killMs: 3 }
const uid = '0f8fad5b-d9cb-469f-a165-70867728950e'
const hello = { kind: 'hello', worker, times, runsDir: '/runs', renewedAtMs: 5 }
const salvage = { url: 'https://h/state/a/b/run/c/state', token: 't', epoch: 7, path: '/runs/x/state' }
const run = { uid, directory: `/runs/${uid}`, salvage, endsByMs: 9.5, interrupt: 'Program' }

const messages: readonly object[] = [
  ...[hello, { kind: 'renewed', worker, atMs: 1.5 }, { kind: 'run', run }, { kind: 'run', run: { uid, directory: '/runs/x' } }],
  ...[
    { kind: 'credential', token: 't' },
    { kind: 'started', uid, processGroupId: 2 },
    { kind: 'ended', uid, processGroupId: 4_194_304 },
  ],
  ...[
    { kind: 'interrupted', uid },
    { kind: 'saved', uid, digest: 'd' },
    { kind: 'done', uid },
    { kind: 'abandoned', uid },
    { kind: 'disconnect' },
  ],
]
for (const message of messages) test(`a message: ${JSON.stringify(message).slice(0, 100)}`, () => deepEqual(parseMessage(message), message))

for (const [name, value] of [
  ['a list', []],
  ['an object without a kind', { uid }],
  ['a kind that is no text', { kind: 5 }],
  ['a worker that is process 1', { ...hello, worker: { ...worker, pid: 1 } }],
  ['no worker', { kind: 'hello' }],
  ['a worker that is null', { kind: 'renewed', worker: null, atMs: 1 }],
  ['deadlines that do not rise', { ...hello, times: { interruptMs: 2, terminateMs: 2, killMs: 3 } }],
  ['a deadline after a year', { ...hello, times: { ...times, killMs: 365 * 86_400_000 } }],
  ['a relative directory of Runs', { ...hello, runsDir: 'runs' }],
  ['a time that is infinite', { kind: 'renewed', worker, atMs: Number.POSITIVE_INFINITY }],
  ['a time that is text', { kind: 'renewed', worker, atMs: '5' }],
  ['a UID that is a path', { kind: 'run', run: { ...run, uid: '../x' } }],
  ['a directory with a zero byte', { kind: 'run', run: { ...run, directory: '/runs/\0' } }],
  ['an upload to a file', { kind: 'run', run: { ...run, salvage: { ...salvage, url: 'file:///etc/passwd' } } }],
  ['an unknown target of SIGINT', { kind: 'run', run: { ...run, interrupt: 'All' } }],
  ['an epoch that is not a whole number', { kind: 'run', run: { ...run, salvage: { ...salvage, epoch: 1.5 } } }],
  ['every process of the user', { kind: 'started', uid, processGroupId: -1 }],
  ['group 1', { kind: 'started', uid, processGroupId: 1 }],
  ['a group that no process can have', { kind: 'ended', uid, processGroupId: 4_194_305 }],
  ['a digest that is no text', { kind: 'saved', uid, digest: {} }],
] as const) {
  test(`no message: ${name}`, () => deepEqual(parseMessage(value), undefined))
}

for (const kind of ['later', '__proto__', 'toString'])
  test(`a kind of a later version: ${kind}`, () => deepEqual(parseMessage({ kind }), 'unknown'))
