import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { differences } from './differences.ts'
import { casesWithResponses, nameOf, unexpectedDifference } from './suite.ts'
import type { Step, Transcript } from './transcript.ts'

const file = join(import.meta.dirname, 'gateway-differences.yaml')

/** A response through a gateway that differs from that of one server. */
type GatewayDifference = {
  /** File and title. */
  readonly case: string
  /** Its number in the case, and the request. */
  readonly step: string
  readonly reason: string
  /** It depends on time: it may also be as against one server. */
  readonly mayAgree?: boolean
  /** From the response of kube-apiserver. */
  readonly lines: string
}

export type Unexpected = { readonly title: string; readonly step: Step; readonly found: string }

const keyOf = (difference: Pick<GatewayDifference, 'case' | 'step'>) => `${difference.case}\n${difference.step}`

function readAccepted(): Map<string, GatewayDifference> {
  const list = parse(readFileSync(file, 'utf8')) as GatewayDifference[]
  return new Map(list.map(each => [keyOf(each), each]))
}

/** A condition that changes within the second of its creation keeps its time, so that who changed it does not own the time. */
const withoutTransition = (lines: string) => lines.replaceAll(' .status.conditions[type=Established].lastTransitionTime,', '')

/** The steps of a transcript with their responses, and the accepted difference of each. */
function* stepsOf(transcript: Transcript, responses: readonly string[], accepted: ReadonlyMap<string, GatewayDifference>) {
  for (const [{ title }, steps] of casesWithResponses(transcript, responses)) {
    for (const [index, [step, response]] of steps.entries()) {
      const at = { case: `${nameOf(transcript)}: ${title}`, step: `${index + 1} ${step.verb} ${step.target}` }
      yield { title, step, response, at, known: accepted.get(keyOf(at)) }
    }
  }
}

/** Responses through a gateway that are neither as against one server nor as `gateway-differences.yaml` has them. */
export function unexpectedThroughGateway(transcript: Transcript, responses: readonly string[], accepted = readAccepted()): Unexpected[] {
  const unexpected: Unexpected[] = []
  for (const { title, step, response, known } of stepsOf(transcript, responses, accepted)) {
    const lines = differences(step.response, response)
    const asOneServer = unexpectedDifference(step, response)
    if (!known) {
      if (asOneServer) unexpected.push({ title, step, found: asOneServer })
      continue
    }
    if (withoutTransition(lines) === withoutTransition(known.lines) || (known.mayAgree && !asOneServer)) continue
    const found = asOneServer
      ? `differs in another way than gateway-differences.yaml has (${known.reason}):\n${lines}`
      : `is as against one server, but gateway-differences.yaml has a difference: ${known.reason}`
    unexpected.push({ title, step, found })
  }
  return unexpected
}

/** Writes the differences of all transcripts into `gateway-differences.yaml`; one without a reason gets "not yet". */
export function acceptThroughGateway(transcripts: readonly Transcript[], responses: readonly string[][]): void {
  const accepted = readAccepted()
  const played = new Set(transcripts.map(nameOf))
  const kept = [...accepted.values()].filter(({ case: title }) => !played.has(title.split(':', 1)[0] ?? ''))
  for (const [index, transcript] of transcripts.entries()) {
    for (const { step, response, at, known } of stepsOf(transcript, responses[index] ?? [], accepted)) {
      if (!unexpectedDifference(step, response)) {
        if (known?.mayAgree) kept.push(known)
        continue
      }
      const { reason = 'not yet', mayAgree } = known ?? {}
      kept.push({ ...at, reason, ...(mayAgree && { mayAgree }), lines: differences(step.response, response) })
    }
  }
  kept.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  writeFileSync(file, stringify(kept, { lineWidth: 0 }))
}
