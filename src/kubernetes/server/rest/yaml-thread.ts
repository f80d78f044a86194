import { type Status, StatusError } from '../../object/index.ts'
import { serveThreadRequests } from '../../util/index.ts'
import { checkSize } from './check-size.ts'
import { parseYamlText } from './parse-yaml.ts'

/** The text as JSON, or the error. */
export type YamlReply = { json: string } | { status: Status } | { error: string }

// The thread that parses long YAML: it blocks only other requests with long YAML.
serveThreadRequests(read)

function read(text: string): YamlReply {
  try {
    return { json: JSON.stringify(checkSize(parseYamlText(text)) ?? null) }
  } catch (error) {
    if (error instanceof StatusError) return { status: error.toStatus() }
    return { error: (error as Error).message }
  }
}
