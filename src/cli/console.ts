import { CliError, usageError } from './cli-error.ts'
import { choosePaint, type Paint } from './output/style.ts'

/** Prints one line on stdout, the place of results. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints one line on stderr, the place of progress, hints and questions: results stay clean for scripts. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`)
}

export const outPaint = (): Paint => choosePaint(process.stdout, process.env)
export const errPaint = (): Paint => choosePaint(process.stderr, process.env)

/** Asks yes or no. `--yes` answers; where nobody can answer, not asking is an error and never a silent yes. */
export async function confirm(question: string, options: { yes?: boolean }): Promise<void> {
  if (options.yes) return
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw usageError(`${question} cannot be asked: this is not a terminal`, 'say --yes to go on')
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${question} [y/N] `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('not confirmed, so nothing was done')
  } finally {
    terminal.close()
  }
}
