import { differences } from './differences.ts'
import { startEmbeddedServer } from './embedded-server.ts'
import { acceptThroughGateway, unexpectedThroughGateway } from './gateway-differences.ts'
import { startGatewayTarget } from './gateway-target.ts'
import { peerMissing, startPeer } from './peer.ts'
import { casesWithResponses, findTranscripts, nameOf, playAll, unexpectedDifference } from './suite.ts'
import { summarize, writeSummary } from './summary.ts'
import type { Target } from './target.ts'
import { type Transcript, writeTranscript } from './transcript.ts'

// node test/conformance/run.ts record|compare|replay|accept|count [--gateway] [PART OF A FILE NAME…]: see README.md.

const isThroughGateway = process.argv.includes('--gateway')
const [mode, ...wanted] = process.argv.slice(2).filter(each => each !== '--gateway')
const startTarget = isThroughGateway ? startGatewayTarget : startEmbeddedServer
const transcripts = findTranscripts(wanted)

switch (mode) {
  case 'record':
    process.exitCode = await record()
    break
  case 'compare':
    process.exitCode = await compare()
    break
  case 'replay':
    process.exitCode = isThroughGateway
      ? reportGateway(await playAgainst(startTarget))
      : report(transcripts, await playAgainst(startTarget))
    break
  case 'accept':
    if (isThroughGateway) acceptThroughGateway(transcripts, await playAgainst(startTarget))
    else acceptDifferences(await playAgainst(startTarget))
    break
  case 'count':
    console.log(summarize(transcripts))
    break
  default:
    console.error(`unknown mode ${JSON.stringify(mode ?? '')}: use record, compare, replay, accept or count`)
    process.exitCode = 2
}

/** Writes the responses of a real kube-apiserver into the transcripts. */
async function record(): Promise<number> {
  const missing = peerMissing()
  if (missing) {
    console.error(`record: ${missing}`)
    return 1
  }
  const responses = await playAgainst(startPeer)
  forEachStep(responses, (step, response) => {
    step.response = response
  })
  for (const transcript of transcripts) writeTranscript(transcript)
  return 0
}

/** Compares a real kube-apiserver with the recording, then the embedded server with the real one. */
async function compare(): Promise<number> {
  const missing = peerMissing()
  if (missing) {
    console.log(`compare: skipped: ${missing}`)
    // CI must not pass without the comparison.
    return process.env.CI === 'true' ? 1 : 0
  }
  const peerResponses = await playAgainst(startPeer)
  // kube-apiserver decides from caches that lag behind its writes, so a change counts only if a fresh kube-apiserver confirms it.
  const changedTranscripts = transcripts.filter((transcript, i) =>
    transcript.cases.flatMap(({ steps }) => steps).some((step, j) => differences(step.response, peerResponses[i]![j]!)),
  )
  const again = changedTranscripts.length > 0 ? await playAgainst(startPeer, changedTranscripts) : []
  changedTranscripts.forEach((transcript, i) => {
    peerResponses[transcripts.indexOf(transcript)] = again[i]!
  })
  let changed = 0
  forEachStep(peerResponses, (step, response, where) => {
    const found = differences(step.response, response)
    if (found) {
      changed++
      console.log(`recording out of date: ${where}\n${found}\n`)
    }
    step.response = response
  })
  return report(transcripts, await playAgainst(startEmbeddedServer)) || (changed > 0 ? 1 : 0)
}

/** Writes the differences of the embedded server into the transcripts; a difference without a reason gets "not yet". */
function acceptDifferences(responses: string[][]): void {
  forEachStep(responses, (step, response) => {
    const lines = differences(step.response, response)
    step.differs = lines ? { reason: step.differs?.reason ?? 'not yet', lines } : undefined
  })
  for (const transcript of transcripts) writeTranscript(transcript)
  writeSummary(summarize(findTranscripts()))
}

function report(of: readonly Transcript[], responses: string[][]): number {
  let wrong = 0
  let cases = 0
  of.forEach((transcript, i) => {
    for (const [{ title }, steps] of casesWithResponses(transcript, responses[i]!)) {
      cases++
      for (const [step, response] of steps) {
        const found = unexpectedDifference(step, response)
        if (!found) continue
        wrong++
        console.log(`${nameOf(transcript)}: ${title}\n  ${step.verb} ${step.target}\n${found.replace(/^/gm, '    ')}\n`)
      }
    }
  })
  console.log(`${cases} cases, ${wrong} unexpected responses`)
  return wrong > 0 ? 1 : 0
}

function reportGateway(responses: string[][]): number {
  const unexpected = transcripts.flatMap((transcript, i) =>
    unexpectedThroughGateway(transcript, responses[i]!).map(each => ({ ...each, title: `${nameOf(transcript)}: ${each.title}` })),
  )
  for (const { title, step, found } of unexpected) console.log(`${title}\n  ${step.verb} ${step.target}\n${found.replace(/^/gm, '    ')}\n`)
  const cases = transcripts.flatMap(each => each.cases).length
  console.log(`${cases} cases through a gateway, ${unexpected.length} unexpected responses`)
  return unexpected.length > 0 ? 1 : 0
}

async function playAgainst(start: () => Promise<Target>, these = transcripts): Promise<string[][]> {
  const target = await start()
  try {
    return await playAll(these, target)
  } finally {
    await target.close()
  }
}

function forEachStep(
  responses: string[][],
  visit: (step: Transcript['cases'][number]['steps'][number], response: string, where: string) => void,
): void {
  transcripts.forEach((transcript, i) => {
    for (const [{ title }, steps] of casesWithResponses(transcript, responses[i]!)) {
      for (const [step, response] of steps) visit(step, response, `${nameOf(transcript)}: ${title}: ${step.verb} ${step.target}`)
    }
  })
}
