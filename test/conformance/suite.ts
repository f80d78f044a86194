import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import { differences } from './differences.ts'
import { play } from './play.ts'
import type { Target } from './target.ts'
import { type Case, readTranscript, type Step, type Transcript } from './transcript.ts'

const directory = import.meta.dirname
const concurrency = 6

export function findTranscripts(wanted: readonly string[] = []): Transcript[] {
  return globSync(join(directory, 'cases', '**', '*.txt'))
    .sort()
    .filter(file => wanted.length === 0 || wanted.some(part => file.includes(part)))
    .map(readTranscript)
}

export const nameOf = ({ file }: Transcript): string => relative(join(directory, 'cases'), file).replace(/\.txt$/, '')

/**
 * Plays transcripts concurrently; returns the responses in the order of the transcripts. A transcript whose head contains "Played alone"
 * changes defaults of the whole server; it is played after all others.
 */
export async function playAll(transcripts: readonly Transcript[], target: Target): Promise<string[][]> {
  const responses: string[][] = []
  const indexes = [...transcripts.keys()]
  const isAlone = (at: number) => transcripts[at]!.intro.includes('Played alone')
  const playIndexes = async (waiting: number[], atOnce: number) => {
    const worker = async () => {
      for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) responses[at] = await play(transcripts[at]!, target)
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
  }
  await playIndexes(
    indexes.filter(at => !isAlone(at)),
    concurrency,
  )
  await playIndexes(indexes.filter(isAlone), 1)
  return responses
}

/**
 * The unexpected difference of a response of the embedded server, or undefined: it differs from the recording, or not in the way that the
 * transcript accepts.
 */
export function unexpectedDifference(step: Step, embedded: string): string | undefined {
  const found = differences(step.response, embedded)
  if (!step.differs) return found || undefined
  if (found === step.differs.lines) return undefined
  return found
    ? `differs in another way than recorded (${step.differs.reason}):\n${found}`
    : `agrees, but the transcript records a difference: ${step.differs.reason}`
}

/** The cases with the responses to their steps. */
export function* casesWithResponses(transcript: Transcript, responses: readonly string[]): Generator<[Case, [Step, string][]]> {
  let at = 0
  for (const found of transcript.cases) yield [found, found.steps.map(step => [step, responses[at++] ?? ''])]
}
