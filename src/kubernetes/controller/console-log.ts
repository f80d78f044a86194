import { escapeHidden } from '../util/escape-hidden.ts'
import type { Log } from '../util/log.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

const order: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Stack frames printed below an error. */
const maxStackFrames = 5

/**
 * A logger without a logging library: one line on stderr per event of at least `level` (default `info`), such as
 * `2026-01-01T00:00:00.000Z ERROR reconcile failed controller="boats" key="default/a" err="no crew"`, followed by the first stack
 * frames of an error. `write` receives the text, for tests.
 */
export function consoleLog(level: LogLevel = 'info', write: (line: string) => unknown = line => process.stderr.write(line)): Log {
  return logWith({}, order.indexOf(level), write)
}

function logWith(common: object, lowest: number, write: (line: string) => unknown): Log {
  const at = (level: LogLevel) => {
    if (order.indexOf(level) < lowest) return () => undefined
    return (fields: object, message: string) => {
      const pairs = Object.entries({ ...common, ...fields }).map(([name, value]) => ` ${name}=${textOf(value)}`)
      const stacks = level === 'error' ? Object.values(fields).map(framesOf).join('') : ''
      // Errors and names may have text of others, which must not look like other lines or run in a terminal.
      write(`${new Date().toISOString()} ${level.toUpperCase()} ${escapeHidden(`${message}${pairs.join('')}`)}\n${stacks}`)
    }
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: fields => logWith({ ...common, ...fields }, lowest, write),
  }
}

/** JSON, so that a line stays one line; for an error, its message and that of its cause. */
function textOf(value: unknown): string {
  if (!(value instanceof Error)) {
    try {
      return JSON.stringify(value) ?? String(value)
    } catch {
      // A cycle or a BigInt: a logger must not throw.
      return JSON.stringify(String(value))
    }
  }
  const { message, cause } = value
  // Errors of this library already include the message of their cause.
  const namesCause = !(cause instanceof Error) || message.includes(cause.message)
  return JSON.stringify(namesCause ? message : `${message}: ${cause.message}`)
}

function framesOf(value: unknown): string {
  if (!(value instanceof Error)) return ''
  const { message, stack = '' } = value
  // The stack begins with the message, whose lines may look like frames. One that was changed later is not in it, and cannot be distinguished from frames.
  const start = stack.indexOf(message)
  if (start < 0) return ''
  const frames = stack
    .slice(start + message.length)
    .split('\n')
    .filter(line => /^\s+at /.test(line))
  return frames
    .slice(0, maxStackFrames)
    .map(line => `    ${escapeHidden(line.trim())}\n`)
    .join('')
}
