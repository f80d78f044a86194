import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { PulumiEvent, PulumiUpdate } from '../../pulumi-backend/index.ts'
import type { RunPulumiState } from '../engine.ts'
import { RunBackend } from './run-backend.ts'

const stack = { organization: 'apps', project: 'web', stack: 'dev' }
const update = (id: string, more: Partial<PulumiUpdate> = {}): PulumiUpdate => ({
  ...{ id, stack, kind: 'update', isPreview: false, number: 1, cliVersion: '3.260.0', isJournaled: true },
  ...more,
})

test('a command gets the events of its own update, and not those of an update that its program starts or that ran before', async () => {
  const messages: string[] = []
  const state = { readPulumiVersion: async () => undefined } as unknown as RunPulumiState
  const backend = new RunBackend({
    ...{ state, stack, readOther: async () => undefined, onRefused: () => {} },
    onEvents: (events: readonly PulumiEvent[]) =>
      messages.push(...events.map(event => (event.kind === 'error' ? event.message : event.kind))),
  })
  const error = (message: string): PulumiEvent => ({ sequence: 1, timeMs: 0, kind: 'error', message })
  backend.beginCommand()
  await backend.startUpdate(update('preview', { isPreview: true, number: 0 }))
  await backend.startUpdate(update('of the program'))
  await backend.recordEvents(update('preview'), [error('first')])
  await backend.recordEvents(update('of the program'), [error('other')])
  backend.beginCommand()
  await backend.recordEvents(update('preview'), [error('late')])
  await backend.startUpdate(update('up'))
  await backend.recordEvents(update('up'), [error('second')])
  await backend.recordEvents(update('preview'), [error('late')])
  deepEqual(messages, ['first', 'second'])
})
