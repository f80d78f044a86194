import { parse } from 'yaml'
import { badRequest, parseJsonStrict, StatusError, type StrictJson } from '../../kube/index.ts'

const bodyTypes = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/**
 * Reads a body as JSON or YAML, by its content type (absent: JSON).
 * @throws {StatusError} BadRequest, or UnsupportedMediaType naming what is read.
 */
export function parseBody(text: string, contentType: string): unknown {
  if (isJson(contentType)) return parseJson(text)
  if (contentType === 'application/yaml' || contentType === 'application/x-yaml' || contentType === 'text/yaml') return parseYaml(text)
  throw unsupportedMediaType(bodyTypes)
}

export const isJson = (contentType: string): boolean => contentType === '' || contentType === 'application/json'

/** JSON and the paths of its keys that stand twice. */
export function parseBodyStrict(text: string): StrictJson {
  try {
    return parseJsonStrict(text)
  } catch (error) {
    throw badRequest(`the body of the request is not valid JSON: ${(error as Error).message.slice(0, 200)}`)
  }
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badRequest(`the body of the request is not valid JSON: ${(error as Error).message.slice(0, 200)}`)
  }
}

// Aliases are counted by the parser, so that a small document cannot grow without bound.
export function parseYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: 100, prettyErrors: false, schema: 'core', version: '1.2' })
  } catch (error) {
    throw badRequest(`the body of the request is not valid YAML: ${(error as Error).message.slice(0, 200)}`)
  }
}

export function unsupportedMediaType(supported: readonly string[]): StatusError {
  return new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${supported.join(', ')}`,
  )
}
