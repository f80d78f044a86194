import { deepEqual } from 'node:assert/strict'
import { after, test } from 'node:test'
import { unexpectedThroughGateway } from './gateway-differences.ts'
import { startGatewayTarget } from './gateway-target.ts'
import { findTranscripts, nameOf, playAll } from './suite.ts'

// Plays the recorded conversations with a real kube-apiserver through a gateway: the responses are as against one server.

const target = await startGatewayTarget()
after(() => target.close())
const transcripts = findTranscripts()
const responses = await playAll(transcripts, target)

transcripts.forEach((transcript, i) => {
  test(`through a gateway: ${nameOf(transcript)}`, () => {
    deepEqual(
      unexpectedThroughGateway(transcript, responses[i]!).map(
        ({ title, step, found }) => `${title}: ${step.verb} ${step.target}\n${found}`,
      ),
      [],
    )
  })
})
