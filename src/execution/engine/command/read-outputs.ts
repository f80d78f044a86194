import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { Output } from '../engine.ts'
import { EngineError } from '../engine-error.ts'

/** A Secret holds at most 1 MiB; outputs become one. */
export const maxOutputsBytes = 900_000
const namePattern = /^[A-Za-z0-9_][-A-Za-z0-9_.]{0,252}$/

/**
 * Reads what a command wrote to OARLOCK_OUTPUTS: a JSON object of name to value. `{ "value": …, "sensitive": true }` marks a secret one.
 * An empty text is no outputs.
 * @throws {EngineError} InvalidOutputs, never quoting a value.
 */
export function readOutputs(text: string): Record<string, Output> {
  if (Buffer.byteLength(text) > maxOutputsBytes) throw tooManyOutputBytes(Buffer.byteLength(text))
  if (text.trim() === '') return {}
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    // V8 quotes the text around the mistake: only the place may be shown.
    const place = /(?:at )?(position \d+(?: \(line \d+ column \d+\))?)/.exec((error as Error).message)?.[1]
    throw invalid(`is no JSON${place ? ` (${place})` : ''}; write one object, such as {"url": "https://…"}`)
  }
  if (!isJsonObject(document)) throw invalid(`has ${kindOf(document)}; write one object, such as {"url": "https://…"}`)
  const outputs: Record<string, Output> = {}
  for (const [name, value] of Object.entries(document)) {
    if (!namePattern.test(name)) {
      throw invalid(`has output name ${JSON.stringify(name.slice(0, 80))}; names have letters, digits, "-", "_" and ".", at most 253`)
    }
    outputs[name] = readOutput(name, value)
  }
  return outputs
}

export function tooManyOutputBytes(bytes: number): EngineError {
  return invalid(`has ${bytes} bytes; at most ${maxOutputsBytes} are allowed`)
}

function readOutput(name: string, value: unknown): Output {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'value') || !Object.hasOwn(value, 'sensitive'))
    return { value: value as Json, sensitive: false }
  const extra = Object.keys(value).find(key => key !== 'value' && key !== 'sensitive')
  if (extra !== undefined) return { value: value as Json, sensitive: false }
  if (typeof value.sensitive !== 'boolean') throw invalid(`has ${name}.sensitive of ${kindOf(value.sensitive)}; it must be true or false`)
  return { value: value.value as Json, sensitive: value.sensitive }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

function invalid(what: string): EngineError {
  return new EngineError('InvalidOutputs', `the file OARLOCK_OUTPUTS ${what}`, { retryable: true })
}
