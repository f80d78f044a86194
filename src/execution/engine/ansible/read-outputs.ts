import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { EngineContext, Output } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { describeOutputName, isMarkedOutput, isOutputName, maxOutputsBytes } from '../output-marks.ts'
import { parseJson } from './json-line.ts'
import { outputsPath } from './run-files.ts'

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
      if (!isOutputName(name)) throw invalid(`the name ${describeOutputName(name)}`)
      outputs[name] =
        isMarkedOutput(value) && typeof value.sensitive === 'boolean'
          ? { value: value.value, sensitive: value.sensitive }
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
