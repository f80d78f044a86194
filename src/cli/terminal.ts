import { CliError, usageError } from './cli-error.ts'
import { createControlEscaper, escapeControls } from './output/escape-controls.ts'
import { choosePaint, type Paint } from './output/style.ts'

/** Prints one line on stdout, which carries results only. */
export function print(line: string): void {
  process.stdout.write(`${escapeControls(line)}\n`)
}

/** Prints what `stream` passes to its argument, such as the log of a Run. */
export async function printStream(
  stream: (write: (bytes: Uint8Array) => void) => Promise<void>,
  output: NodeJS.WritableStream = process.stdout,
): Promise<void> {
  const escaper = createControlEscaper(text => void output.write(text))
  try {
    await stream(escaper.push)
  } finally {
    escaper.end()
  }
}

/** Prints one line on stderr, which carries progress, hints and questions, so that scripts can read results from stdout. */
export function note(line: string): void {
  process.stderr.write(`${escapeControls(line)}\n`)
}

export const outPaint = (): Paint => choosePaint(process.stdout, process.env)
export const errPaint = (): Paint => choosePaint(process.stderr, process.env)

/** Asks for confirmation. `--yes` confirms; without a terminal it is an error, never a silent yes. */
export async function confirm(question: string, options: { yes?: boolean }): Promise<void> {
  if (options.yes) return
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw usageError(`cannot ask for confirmation (${question}): stdin is not a terminal`, 'confirm with --yes')
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await terminal.question(`${question} [y/N] `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('not confirmed: nothing was changed')
  } finally {
    terminal.close()
  }
}
