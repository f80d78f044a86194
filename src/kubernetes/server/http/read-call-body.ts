import { mediaType } from '../../util/index.ts'
import { nextSlice } from '../fairness/index.ts'
import type { Verb } from '../registry/index.ts'
import { type Call, isLongYaml, parseAsJson, YamlParserThread } from '../rest/index.ts'
import type { HttpRequest } from './handler-types.ts'
import { protobufType, readProtobuf } from './protobuf.ts'
import { readBody } from './read-body.ts'

const longYaml = new YamlParserThread()
/** Bodies up to this length are processed in the iteration of the event loop in which they arrive. */
const maxSmallBytes = 64 * 1024

/**
 * Reads a body as text with its content type. Protobuf becomes JSON, and so does long YAML, which is parsed in a thread; users take turns.
 * @throws {StatusError} of {@link readBody}, {@link readProtobuf} and {@link YamlParserThread}.
 */
export async function readCallBody(
  request: HttpRequest,
  verb: Verb,
  user: string,
): Promise<Pick<Call['input'], 'contentType' | 'body' | 'json'>> {
  const contentType = mediaType(request.headers['content-type'])
  if (request.method === 'GET' || request.method === 'HEAD') return { contentType, body: '' }
  const bytes = await readBody(request)
  // Several long bodies may end in one iteration.
  if (bytes.length > maxSmallBytes) await nextSlice()
  if (contentType === protobufType) return { contentType: 'application/json', body: JSON.stringify(readProtobuf(bytes)) }
  const body = bytes.toString('utf8')
  if (!isLongYaml(body, contentType)) return { contentType, body }
  const json = parseAsJson(body)
  if (bytes.length > maxSmallBytes) await nextSlice()
  if (json) return { contentType, body, json }
  // A patch keeps its content type, which selects the patch type; an apply patch may be JSON too.
  return { contentType: verb === 'patch' ? contentType : 'application/json', body: await longYaml.toJson(body, user) }
}
