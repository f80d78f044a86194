import { badRequest, describeJsonSyntaxError, duplicateKeys, StatusError, type StrictJson } from '../../object/index.ts'
import { checkParsed, checkSize, checkText } from './check-size.ts'
import { parseYamlText, withoutDuplicates } from './parse-yaml.ts'

const bodyTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/**
 * Parses a body as JSON or YAML, by its content type (absent: JSON).
 * @throws {StatusError} BadRequest, or UnsupportedMediaType with the supported types.
 */
export function parseBody(text: string, contentType: string): unknown {
  if (isJson(contentType)) return checkParsed(parseJson(text), text)
  if (contentType === 'application/yaml' || contentType === 'application/x-yaml' || contentType === 'text/yaml') return parseYaml(text)
  throw unsupportedMediaType(bodyTypes)
}

export const isJson = (contentType: string): boolean => contentType === '' || contentType === 'application/json'

/** Parses JSON and returns the paths of its duplicate keys too. */
export function parseBodyStrict(text: string): StrictJson {
  const value = checkParsed(parseJson(text), text)
  return { value, duplicates: duplicateKeys(text, value) }
}

export function parseJson(text: string): unknown {
  checkText(text)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badRequest(`the body of the request is not valid JSON: ${describeJsonSyntaxError(error)}`)
  }
}

/** @param json the text as JSON, if it was parsed already. */
export function parseYaml(text: string, json?: StrictJson): unknown {
  try {
    return checkSize(json ? withoutDuplicates(json) : parseYamlText(text))
  } catch (error) {
    if (error instanceof StatusError) throw error
    throw notYaml((error as Error).message)
  }
}

export function notYaml(why: string): StatusError {
  return badRequest(`the body of the request is not valid YAML: ${why.slice(0, 200)}`)
}

export function unsupportedMediaType(supported: readonly string[]): StatusError {
  return new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${supported.join(', ')}`,
  )
}
