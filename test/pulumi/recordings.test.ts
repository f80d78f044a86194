/** Conversations that were recorded between the real Pulumi CLI and our endpoint, replayed. `README.md` describes how to record them. */
import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { isJournalTested } from '../../src/execution/pulumi-backend/index.ts'
import { parseUntypedDeployment } from '../../src/stores/pulumi/index.ts'
import { decodeRecording, encodeRecording, type RecordedExchange, type Recording, type RecordingHeader } from './recording.ts'
import { replayOnEndpoint } from './replay-endpoint.ts'
import { scenarios } from './scenarios.ts'

const files = globSync(join(import.meta.dirname, 'recordings', '*.jsonl.zst')).sort()
const recordings = files.map(file => ({ name: basename(file, '.jsonl.zst'), bytes: readFileSync(file) }))
const open = (name: string): Recording => decodeRecording(recordings.find(each => each.name === name)!.bytes)

const exchangesOf = ({ lines }: Recording): RecordedExchange[] => lines.filter(line => line.kind === 'exchange')
function bodyOf(exchange: RecordedExchange): string {
  const bytes = Buffer.from(exchange.body, 'base64')
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString()
}

describe('recordings', () => {
  test('there is one of every scenario, and together they are small', () => {
    deepEqual(recordings.map(each => each.name).sort(), scenarios.map(each => each.name).sort())
    const size = recordings.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
    ok(size < 1_500_000, `${size} bytes`)
  })

  for (const { name, bytes } of recordings)
    test(`${name} names a tested version of the CLI and the digest of its binary, and that CLI sent its requests`, () => {
      const recording = decodeRecording(bytes)
      const { scenario, cliVersion, cliSha256, settings } = recording.header
      equal(scenario, name)
      match(cliSha256, /^[0-9a-f]{64}$/)
      ok(isJournalTested(cliVersion), cliVersion)
      deepEqual(settings, scenarios.find(each => each.name === name)?.settings ?? {})
      const exchanges = exchangesOf(recording)
      ok(exchanges.length > 5)
      for (const { headers } of exchanges) {
        const agent = headers[headers.findIndex(each => each.toLowerCase() === 'user-agent') + 1]
        equal(agent?.slice(0, cliVersion.length + 17), `pulumi-cli/1 (v${cliVersion}; `)
      }
    })

  test('one without the version or the digest of the CLI is not accepted', () => {
    const { header, lines } = open('conflict')
    for (const change of [{ cliVersion: '' }, { cliVersion: 'dev' }, { cliSha256: '' }, { cliSha256: 'abc' }, { format: 2 }])
      throws(() => decodeRecording(encodeRecording({ header: { ...header, ...change } as RecordingHeader, lines })), JSON.stringify(change))
    throws(() => decodeRecording(encodeRecording({ header: lines[0] as never, lines })))
  })
})

describe('replays', () => {
  for (const { name, bytes } of recordings)
    test(`${name}: the endpoint answers as it answered the CLI`, async () => {
      const recording = decodeRecording(bytes)
      const { requests, differences, errors } = await replayOnEndpoint(recording)
      deepEqual(differences, [])
      deepEqual(errors, [])
      equal(requests, exchangesOf(recording).length)
    })

  test('a different answer is found', async () => {
    const recording = open('import-export')
    const lines = recording.lines.map(line =>
      line.kind === 'exchange' && line.path.endsWith('/export')
        ? {
            ...line,
            answer: Buffer.from(
              Buffer.from(line.answer ?? '', 'base64')
                .toString()
                .replace('"urn:', '"urn_'),
            ).toString('base64'),
          }
        : line,
    )
    const { differences } = await replayOnEndpoint({ ...recording, lines })
    ok(differences.length > 0)
    match(differences[0]?.request ?? '', /GET .*\/export$/)
  })

  for (const name of ['up', 'changes', 'destroy'])
    test(`${name} killed after each of its requests: every acknowledged entry is stored, and the state is readable`, async () => {
      const recording = open(name)
      const exchanges = exchangesOf(recording)
      let previous = 0
      for (let until = 1; until <= exchanges.length; until++) {
        const acknowledged = exchanges.slice(0, until).filter(each => each.path.endsWith('/journalentries') && each.status === 200)
        const { backend, handler } = await replayOnEndpoint(recording, { until })
        const stored = backend.calls.filter(call => call.startsWith('appendJournalEntries'))
        equal(stored.length, acknowledged.length)
        for (const each of acknowledged) {
          // Those of updates that are complete have been compacted.
          const ids = (JSON.parse(bodyOf(each)) as { entries: { sequenceID: number }[] }).entries.map(entry => entry.sequenceID)
          ok(
            stored.some(call => call.endsWith(`: ${ids.join(' ')}`)),
            `${until}: ${ids}`,
          )
        }
        const key = [...backend.stacks.keys()].find(each => each === 'apps/web/dev')
        if (key === undefined) continue
        const state = await backend.readDeployment({ organization: 'apps', project: 'web', stack: 'dev' })
        if (state) parseUntypedDeployment(Buffer.from(state).toString())
        await handler.abandonUpdates()
        ok(stored.length >= previous)
        previous = stored.length
      }
    })

  test('fencing: the refused request holds the resource in flight, and is kept', async () => {
    const { backend } = await replayOnEndpoint(open('fencing'))
    const entries = backend.refused.flatMap(write => (write.kind === 'journalEntries' ? write.entries : []))
    ok(
      entries.some(({ value }) => value.kind === 1 && value.state !== undefined),
      JSON.stringify(entries.map(each => each.value.kind)),
    )
    const acknowledged = backend.journal.map(each => each.sequenceId)
    ok(entries.every(each => !acknowledged.includes(each.sequenceId)))
  })

  test('too-large: the CLI sends halves until they are accepted, and no entry is missing', async () => {
    const recording = open('too-large')
    const appends = exchangesOf(recording).filter(each => each.path.endsWith('/journalentries'))
    ok(appends.some(each => each.status === 413))
    const ids = (each: RecordedExchange) =>
      (JSON.parse(bodyOf(each)) as { entries: { sequenceID: number }[] }).entries.map(entry => entry.sequenceID)
    const byUpdate = new Map<string, number[]>()
    for (const each of appends) if (each.status === 200) byUpdate.set(each.path, [...(byUpdate.get(each.path) ?? []), ...ids(each)])
    equal(byUpdate.size, 2)
    for (const sent of byUpdate.values())
      deepEqual(
        sent.toSorted((a, b) => a - b),
        sent.map((_, i) => i + 1),
      )
  })

  test('checkpoints: deltas of the CLI lack the pending operations that plain checkpoints have', () => {
    const pending = (name: string) =>
      exchangesOf(open(name)).filter(each => /\/checkpoint/.test(each.path) && /pending_?operations/i.test(bodyOf(each)))
    ok(pending('checkpoints').length > 5)
    equal(pending('delta-checkpoints').length, 0, 'the CLI has changed: offer delta checkpoints')
  })

  test('secrets: a secret is in no request but those that encrypt it, and in no answer but those that decrypt it', () => {
    const secret = Buffer.from('hunter2').toString('base64')
    const exchanges = exchangesOf(open('secrets'))
    const withSecret = exchanges.filter(each => {
      const answer = Buffer.from(each.answer ?? '', 'base64').toString()
      return [bodyOf(each), answer].some(text => text.includes('hunter2') || text.includes(secret))
    })
    ok(withSecret.length > 1)
    for (const { path } of withSecret) match(path, /\/(batch-)?(en|de)crypt$/)
  })
})
