import { globSync } from 'node:fs'
import { join, relative } from 'node:path'
import { differences } from './differences.ts'
import { play } from './play.ts'
import type { Target } from './target.ts'
import { type Case, readTranscript, type Step, type Transcript } from './transcript.ts'

const directory = import.meta.dirname
const filesAtOnce = 6

export function findTranscripts(wanted: readonly string[] = []): Transcript[] {
  return globSync(join(directory, 'cases', '**', '*.txt'))
    .sort()
    .filter(file => wanted.length === 0 || wanted.some(part => file.includes(part)))
    .map(readTranscript)
}

export const nameOf = ({ file }: Transcript): string => relative(join(directory, 'cases'), file).replace(/\.txt$/, '')

/**
 * Plays transcripts, some at a time; answers in the order of the transcripts. What says at its head that it is played alone
 * changes defaults of the whole server: it comes after all others.
 */
export async function playAll(transcripts: readonly Transcript[], target: Target): Promise<string[][]> {
  const answers: string[][] = []
  const places = [...transcripts.keys()]
  const isAlone = (at: number) => transcripts[at]!.intro.includes('Played alone')
  const playThem = async (waiting: number[], atOnce: number) => {
    const work = async () => {
      for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) answers[at] = await play(transcripts[at]!, target)
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }
  await playThem(
    places.filter(at => !isAlone(at)),
    filesAtOnce,
  )
  await playThem(places.filter(isAlone), 1)
  return answers
}

/** What is wrong with our answer to a step: it differs where it should not, or no longer as the transcript says. */
export function verdict(step: Step, ours: string): string | undefined {
  const found = differences(step.answer, ours)
  if (!step.differs) return found || undefined
  if (found === step.differs.lines) return undefined
  return found
    ? `differs in another way than the transcript says (${step.differs.reason}):\n${found}`
    : `agrees now, though the transcript says: differs: ${step.differs.reason}`
}

/** Each case with the answers to its steps. */
export function* casesWith(transcript: Transcript, answers: readonly string[]): Generator<[Case, [Step, string][]]> {
  let at = 0
  for (const found of transcript.cases) yield [found, found.steps.map(step => [step, answers[at++] ?? ''])]
}
