import { differences } from './differences.ts'
import { startOurs } from './ours.ts'
import { startPeer, whyNoPeer } from './peer.ts'
import { casesWith, findTranscripts, nameOf, playAll, verdict } from './suite.ts'
import { summarise, writeSummary } from './summary.ts'
import { type Transcript, writeTranscript } from './transcript.ts'

// node test/conformance/run.ts record|compare|replay|accept|count [PART OF A FILE NAME…]: see README.md.

const [mode, ...wanted] = process.argv.slice(2)
const transcripts = findTranscripts(wanted)

switch (mode) {
  case 'record':
    process.exitCode = await record()
    break
  case 'compare':
    process.exitCode = await compare()
    break
  case 'replay':
    process.exitCode = report(transcripts, await playAgainst(startOurs))
    break
  case 'accept':
    accept(await playAgainst(startOurs))
    break
  case 'count':
    console.log(summarise(transcripts))
    break
  default:
    console.error(`unknown mode ${JSON.stringify(mode ?? '')}: use record, compare, replay, accept or count`)
    process.exitCode = 2
}

/** Writes the answers of a real kube-apiserver into the transcripts. */
async function record(): Promise<number> {
  const missing = whyNoPeer()
  if (missing) {
    console.error(`record: ${missing}`)
    return 1
  }
  const answers = await playAgainst(startPeer)
  forEachStep(answers, (step, answer) => {
    step.answer = answer
  })
  for (const transcript of transcripts) writeTranscript(transcript)
  return 0
}

/** A real kube-apiserver against what is recorded, then ours against the real one. */
async function compare(): Promise<number> {
  const missing = whyNoPeer()
  if (missing) {
    console.log(`conformance: comparison skipped: ${missing}`)
    return 0
  }
  const theirs = await playAgainst(startPeer)
  // kube-apiserver decides from caches that follow its writes; what it says otherwise than recorded counts when a fresh one says it too.
  const doubtful = transcripts.filter((transcript, i) =>
    transcript.cases.flatMap(({ steps }) => steps).some((step, j) => differences(step.answer, theirs[i]![j]!)),
  )
  const again = doubtful.length > 0 ? await playAgainst(startPeer, doubtful) : []
  doubtful.forEach((transcript, i) => {
    theirs[transcripts.indexOf(transcript)] = again[i]!
  })
  let changed = 0
  forEachStep(theirs, (step, answer, where) => {
    const found = differences(step.answer, answer)
    if (found) {
      changed++
      console.log(`the recording is out of date: ${where}\n${found}\n`)
    }
    step.answer = answer
  })
  return report(transcripts, await playAgainst(startOurs)) || (changed > 0 ? 1 : 0)
}

/** Writes how our answers differ into the transcripts; a difference without a reason gets "not yet". */
function accept(answers: string[][]): void {
  forEachStep(answers, (step, answer) => {
    const lines = differences(step.answer, answer)
    step.differs = lines ? { reason: step.differs?.reason ?? 'not yet', lines } : undefined
  })
  for (const transcript of transcripts) writeTranscript(transcript)
  writeSummary(summarise(findTranscripts()))
}

function report(of: readonly Transcript[], answers: string[][]): number {
  let wrong = 0
  let cases = 0
  of.forEach((transcript, i) => {
    for (const [{ title }, steps] of casesWith(transcript, answers[i]!)) {
      cases++
      for (const [step, answer] of steps) {
        const found = verdict(step, answer)
        if (!found) continue
        wrong++
        console.log(`${nameOf(transcript)}: ${title}\n  ${step.verb} ${step.target}\n${found.replace(/^/gm, '    ')}\n`)
      }
    }
  })
  console.log(`${cases} cases, ${wrong} answers are not as the transcripts say`)
  return wrong > 0 ? 1 : 0
}

async function playAgainst(start: typeof startOurs, these = transcripts): Promise<string[][]> {
  const target = await start()
  try {
    return await playAll(these, target)
  } finally {
    await target.close()
  }
}

function forEachStep(
  answers: string[][],
  visit: (step: Transcript['cases'][number]['steps'][number], answer: string, where: string) => void,
): void {
  transcripts.forEach((transcript, i) => {
    for (const [{ title }, steps] of casesWith(transcript, answers[i]!)) {
      for (const [step, answer] of steps) visit(step, answer, `${nameOf(transcript)}: ${title}: ${step.verb} ${step.target}`)
    }
  })
}
