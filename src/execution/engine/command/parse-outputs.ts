import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { Output } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { describeOutputName, isMarkedOutput, isOutputName, maxOutputsBytes } from '../output-marks.ts'

/**
 * Parses the file OARLOCK_OUTPUTS: a JSON object of name to value. `{ "value": …, "sensitive": true }` marks a sensitive output.
 * An empty text has no outputs.
 * @throws {EngineError} InvalidOutputs, never quoting a value.
 */
export function parseOutputs(text: string): Record<string, Output> {
  if (Buffer.byteLength(text) > maxOutputsBytes)
    throw invalidOutputs(`has ${Buffer.byteLength(text)} bytes; at most ${maxOutputsBytes} are allowed`)
  if (text.trim() === '') return {}
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (error) {
    // V8 quotes the text around the error, which may be secret: only the position is shown.
    const position = /(?:at )?(position \d+(?: \(line \d+ column \d+\))?)/.exec((error as Error).message)?.[1]
    throw invalidOutputs(`is not valid JSON${position ? ` (${position})` : ''}; write one object, such as {"url": "https://…"}`)
  }
  if (!isJsonObject(document)) throw invalidOutputs(`contains ${typeOf(document)}; write one object, such as {"url": "https://…"}`)
  const outputs: Record<string, Output> = {}
  for (const [name, value] of Object.entries(document)) {
    if (!isOutputName(name)) throw invalidOutputs(`has output name ${describeOutputName(name)}`)
    outputs[name] = parseOutput(name, value)
  }
  return outputs
}

function parseOutput(name: string, value: unknown): Output {
  if (!isMarkedOutput(value)) return { value: value as Json, sensitive: false }
  if (typeof value.sensitive !== 'boolean')
    throw invalidOutputs(`has ${typeOf(value.sensitive)} in ${name}.sensitive; it must be true or false`)
  return { value: value.value, sensitive: value.sensitive }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

export function invalidOutputs(problem: string): EngineError {
  return new EngineError('InvalidOutputs', `the file OARLOCK_OUTPUTS ${problem}`, { retryable: true })
}
