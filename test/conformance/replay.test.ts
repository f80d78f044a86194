import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startOurs } from './ours.ts'
import { casesWith, findTranscripts, nameOf, playAll, verdict } from './suite.ts'
import { summarise, summaryInReadme } from './summary.ts'
import { parseTranscript, printTranscript } from './transcript.ts'

// The recorded answers of a real kube-apiserver, asked of ours. Needs no Go; `run.ts record` makes them anew.

const ours = await startOurs()
after(() => ours.close())
const transcripts = findTranscripts()
const answers = await playAll(transcripts, ours)

transcripts.forEach((transcript, i) => {
  for (const [{ title }, steps] of casesWith(transcript, answers[i]!)) {
    test(`${nameOf(transcript)}: ${title}`, () => {
      for (const [step, answer] of steps) {
        const wrong = verdict(step, answer)
        assert.ok(!wrong, `${step.verb} ${step.target}\n${wrong}`)
      }
    })
  }
})

test('the README counts the cases as they are', () => {
  assert.equal(summaryInReadme(), summarise(transcripts), 'run `node test/conformance/run.ts accept`')
})

test('a transcript is written as it was read', () => {
  for (const transcript of transcripts) {
    const text = printTranscript(transcript)
    assert.equal(printTranscript(parseTranscript(transcript.file, text)), text)
  }
})
