import { ok } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { RowTable } from '../projection/row-table.ts'
import type { SessionRecord } from './sessions.ts'
import { maxViews, Stream } from './stream.ts'
import type { ViewSources } from './view-content.ts'

/** 5,000 Stacks that the user may see. */
function sources(): ViewSources {
  const stacks = new RowTable<{ key: string; namespace: string; message: string }>()
  for (let index = 0; index < 5_000; index++) stacks.set({ key: `a/${index}`, namespace: 'a', message: `${index} ${'text '.repeat(40)}` })
  return {
    projections: { tables: { stacks } },
    ...{ visibility: { of: async () => ({ all: true }) }, nowMs: () => 0 },
  } as unknown as ViewSources
}

/** Of a browser with as many views as it may have, which reads nothing. */
function open(from: ViewSources): { readonly stream: Stream; readonly response: Writable } {
  const response = new Writable({ write: () => {} })
  const stream = new Stream({} as SessionRecord, from)
  stream.attach(response as unknown as ServerResponse, undefined)
  const views = Array.from({ length: maxViews }, (_, index) => [`${index}`, { kind: 'stacks', filter: 'text', limit: 500 }] as const)
  stream.setViews(new Map(views))
  return { stream, response }
}

test('a browser that does not read is sent one view beyond the limit at most', async () => {
  const { stream, response } = open(sources())
  for (let count = 0; count < 10; count++) await stream.flush()
  ok(response.writableLength > 256 * 1024 && response.writableLength < 1024 * 1024, `${response.writableLength} bytes are unsent`)
})

test('streams with many views leave room for other work', async () => {
  const from = sources()
  const streams = Array.from({ length: 16 }, () => open(from).stream)
  let isDone = false
  const flushed = Promise.all(streams.map(stream => stream.flush())).then(() => (isDone = true))
  let turns = 0
  while (!isDone) {
    await setTimeout(0)
    turns++
  }
  await flushed
  ok(turns >= streams.length / 2, `other work had ${turns} turns`)
})
