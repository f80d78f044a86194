import { type Status, StatusError } from '../../object/index.ts'
import { serveRequests } from '../../util/index.ts'
import { checkSize } from './check-size.ts'
import { parseYamlText } from './parse-yaml.ts'

/** What came of a text: the same as JSON, or why there is none. */
export type YamlReply = { json: string } | { status: Status } | { error: string }

// The thread that reads long YAML: however long it takes, it keeps nobody waiting but those who sent YAML too.
serveRequests(read)

function read(text: string): YamlReply {
  try {
    return { json: JSON.stringify(checkSize(parseYamlText(text)) ?? null) }
  } catch (error) {
    if (error instanceof StatusError) return { status: error.toStatus() }
    return { error: (error as Error).message }
  }
}
