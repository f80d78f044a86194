/** `line 1 column 5`, or what V8 says instead. */
const position = /(?: in JSON)? at (position \d+(?: \(line \d+ column \d+\))?)$/

/**
 * Why a text is not JSON, without any of the text: V8 quotes what is around the error, which may be a password, and messages reach logs and
 * other users.
 */
export function describeJsonSyntaxError(error: unknown): string {
  const message = (error as Error).message
  if (message === 'Unexpected end of JSON input') return 'unexpected end of the text'
  const at = position.exec(message)?.[1]
  return at === undefined ? 'unexpected character' : `unexpected character at ${at}`
}
