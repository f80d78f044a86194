import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from './suite.ts'
import type { Transcript } from './transcript.ts'

const readme = join(import.meta.dirname, 'README.md')
const begin = '<!-- counted by run.ts -->'
const end = '<!-- end of what is counted -->'

type Row = { agree: number; onPurpose: number; notYet: number }

/** How many cases agree, per group, and the reasons of those that differ: what stands in the README. */
export function summarise(transcripts: readonly Transcript[]): string {
  const groups = new Map<string, Row>()
  const reasons = new Map<string, number>()
  const all: Row = { agree: 0, onPurpose: 0, notYet: 0 }
  for (const transcript of transcripts) {
    const group = nameOf(transcript).split('/')[0]!
    const row = groups.get(group) ?? { agree: 0, onPurpose: 0, notYet: 0 }
    groups.set(group, row)
    for (const { steps } of transcript.cases) {
      const differing = new Set(steps.flatMap(({ differs }) => differs?.reason ?? []))
      for (const reason of differing) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      const verdict = differing.size === 0 ? 'agree' : [...differing].some(isNotYet) ? 'notYet' : 'onPurpose'
      row[verdict]++
      all[verdict]++
    }
  }
  const line = (name: string, { agree, onPurpose, notYet }: Row) => `| ${name} | ${agree} | ${onPurpose} | ${notYet} |`
  const listed = [...reasons].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  const list = (wanted: (reason: string) => boolean) =>
    listed.filter(([reason]) => wanted(reason)).map(([reason, cases]) => `- ${reason.replace(/^[a-z ]+: /, '')} (${cases})`)
  return [
    '| group | agree | differ on purpose | differ, not yet |',
    '|---|---|---|---|',
    ...[...groups].map(([group, row]) => line(group, row)),
    line('all', all),
    '',
    'On purpose:',
    ...list(reason => !isNotYet(reason)),
    '',
    'Not yet:',
    ...list(isNotYet),
  ].join('\n')
}

export function summaryInReadme(): string {
  const text = readFileSync(readme, 'utf8')
  return text.slice(text.indexOf(begin) + begin.length, text.indexOf(end)).trim()
}

export function writeSummary(summary: string): void {
  const text = readFileSync(readme, 'utf8')
  writeFileSync(readme, `${text.slice(0, text.indexOf(begin) + begin.length)}\n${summary}\n${text.slice(text.indexOf(end))}`)
}

function isNotYet(reason: string): boolean {
  return !reason.startsWith('on purpose: ')
}
