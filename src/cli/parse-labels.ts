import { labelErrors } from '../kubernetes/object/index.ts'
import { usageError } from './cli-error.ts'

/** The labels of a repeatable `--label key=value`. @throws {CliError} usage, for an invalid label. */
export function parseLabels(texts: readonly string[], command: string): Record<string, string> {
  const help = `oarlock ${command} --help`
  const pairs = texts.map(text => {
    const at = text.indexOf('=')
    if (at <= 0) throw usageError(`--label must be key=value, got "${text}"`, help)
    return [text.slice(0, at), text.slice(at + 1)] as const
  })
  const parsed = Object.fromEntries(pairs)
  const [error] = labelErrors(parsed, 'labels')
  if (error) throw usageError(`--label ${error.field}: ${error.message}`, help)
  return parsed
}
