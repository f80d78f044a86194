import { parse } from 'yaml'
import { badRequest, StatusError } from '../../kube/index.ts'

const bodyTypes = ['application/json', 'application/yaml']

/**
 * Reads a body as JSON or YAML, by its content type (absent: JSON).
 * @throws {StatusError} BadRequest, or UnsupportedMediaType naming what is read.
 */
export function parseBody(text: string, contentType: string): unknown {
  if (contentType === '' || contentType === 'application/json') return parseJson(text)
  if (contentType === 'application/yaml' || contentType === 'application/x-yaml' || contentType === 'text/yaml') return parseYaml(text)
  throw unsupportedMediaType(contentType, bodyTypes)
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

export function unsupportedMediaType(got: string, supported: readonly string[]): StatusError {
  return new StatusError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format (${got.slice(0, 80)}) - accepted media types include: ${supported.join(', ')}`,
  )
}
