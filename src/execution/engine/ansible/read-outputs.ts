import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { EngineContext, Output } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { isJsonObject, parseJson } from './json-line.ts'
import { outputsPath } from './run-files.ts'

/** Outputs are stored in a Secret, which holds at most 1 MiB. */
const maxOutputsBytes = 900_000
const namePattern = /^[A-Za-z0-9_][-A-Za-z0-9_.]{0,252}$/

/**
 * What the playbooks have set with `set_stats` for the whole run, later playbooks last. `{"value": …, "sensitive": true}` is a marked output.
 * @throws {EngineError} InvalidOutputs, never quoting a value.
 */
export async function readOutputsFile(context: EngineContext): Promise<Record<string, Output>> {
  const outputs: Record<string, Output> = {}
  for (const line of (await readFile(context)).split('\n')) {
    const document = parseJson(line)
    if (!isJsonObject(document)) continue
    for (const [name, value] of Object.entries(document)) {
      if (!namePattern.test(name))
        throw invalid(`the name ${JSON.stringify(name.slice(0, 80))}; a name has at most 253 letters, digits, "-", "_" and "."`)
      const isMarked = isJsonObject(value) && Object.keys(value).sort().join() === 'sensitive,value' && typeof value.sensitive === 'boolean'
      outputs[name] = isMarked
        ? { value: value.value as Output['value'], sensitive: value.sensitive === true }
        : { value: value as Output['value'], sensitive: false }
    }
  }
  return outputs
}

async function readFile(context: EngineContext): Promise<string> {
  try {
    return (await context.files.readText(outputsPath(context), { maxBytes: maxOutputsBytes })) ?? ''
  } catch (error) {
    if (error instanceof UnexpectedFileError) throw invalid(`a problem: the file ${error.problem}`)
    throw error
  }
}

const invalid = (problem: string) => new EngineError('InvalidOutputs', `what set_stats has set has ${problem}`, { retryable: true })
