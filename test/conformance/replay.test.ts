import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startEmbeddedServer } from './embedded-server.ts'
import { casesWithResponses, findTranscripts, nameOf, playAll, unexpectedDifference } from './suite.ts'
import { summarize, summaryInReadme } from './summary.ts'
import { parseTranscript, printTranscript } from './transcript.ts'

// Plays the recorded conversations with a real kube-apiserver against the embedded server. Needs no Go; `run.ts record` records them again.

const embedded = await startEmbeddedServer()
after(() => embedded.close())
const transcripts = findTranscripts()
const responses = await playAll(transcripts, embedded)

transcripts.forEach((transcript, i) => {
  for (const [{ title }, steps] of casesWithResponses(transcript, responses[i]!)) {
    test(`${nameOf(transcript)}: ${title}`, () => {
      for (const [step, response] of steps) {
        const wrong = unexpectedDifference(step, response)
        assert.ok(!wrong, `${step.verb} ${step.target}\n${wrong}`)
      }
    })
  }
})

test('the summary in the README is up to date', () => {
  assert.equal(summaryInReadme(), summarize(transcripts), 'run `node test/conformance/run.ts accept`')
})

test('printing a parsed transcript returns its text', () => {
  for (const transcript of transcripts) {
    const text = printTranscript(transcript)
    assert.equal(printTranscript(parseTranscript(transcript.file, text)), text)
  }
})
