import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startOurs } from './ours.ts'
import { casesWith, findTranscripts, nameOf, playAll, verdict } from './suite.ts'

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
