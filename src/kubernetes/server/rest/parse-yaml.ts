import { isLosslessNumber, parseJsonStrict, StatusError, type StrictJson } from '../../object/index.ts'
import { parseUntrustedYaml } from '../../util/index.ts'
import { checkText, unstorableNumber } from './check-size.ts'

/**
 * Parses one YAML document; duplicate keys are an error.
 * JSON, which kubectl sends as YAML for server-side apply, is parsed as JSON: 200 times as fast, and parsing blocks other requests.
 * @throws {Error} for invalid YAML; {StatusError} for a document that is too large.
 */
export function parseYamlText(text: string): unknown {
  const json = parseAsJson(text)
  return json ? withoutDuplicates(json) : parseUntrustedYaml(text, { checkNumber })
}

function checkNumber(source: string): void {
  if (!isLosslessNumber(source)) throw unstorableNumber(source)
}

/**
 * A YAML text that is JSON, as kubectl sends for server-side apply; undefined for any other.
 * @throws {StatusError} for JSON that is too large.
 */
export function parseAsJson(text: string): StrictJson | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined
  try {
    checkText(text)
    return parseJsonStrict(text)
  } catch (error) {
    if (error instanceof StatusError) throw error
    // Flow style or comments: the YAML parser takes it, or reports the error.
    return undefined
  }
}

/** @throws {Error} for duplicate keys. */
export function withoutDuplicates({ value, duplicates: [duplicate] }: StrictJson): unknown {
  if (duplicate !== undefined) throw new Error(`duplicate key ${JSON.stringify(duplicate)}`)
  return value
}
