/** Conversations that were recorded between the real Pulumi CLI and our endpoint, replayed. `README.md` describes how to record them. */
import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { isJournalTested } from '../../src/execution/pulumi-backend/index.ts'
import { exchangesOf } from './expected-state.ts'
import { decodeRecording, encodeRecording, type RecordedExchange, type Recording, type RecordingHeader } from './recording.ts'
import { replayOnEndpoint } from './replay-endpoint.ts'
import { bodyOf } from './request-text.ts'
import { scenarios } from './scenarios.ts'

const files = globSync(join(import.meta.dirname, 'recordings', '*.jsonl.zst')).sort()
const recordings = files.map(file => ({ name: basename(file, '.jsonl.zst'), bytes: readFileSync(file) }))
const open = (name: string): Recording => decodeRecording(recordings.find(each => each.name === name)!.bytes)

/** They have commands, limits or locks that no Run has; the others are replayed on Runs only (`run-recordings.test.ts`). */
const withoutRun = [
  ...['checkpoints-kill', 'conflict', 'destroy', 'import-export', 'kill-after-create', 'kill-and-cancel', 'secrets', 'stack-commands'],
  ...['stack-reference', 'too-large', 'up'],
]

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

describe('replays on a backend in memory', () => {
  for (const name of withoutRun)
    test(`${name}: the endpoint answers as it answered the CLI`, async () => {
      const recording = open(name)
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
