/** Text of SQL statements that take no parameters: names and literals are quoted as PostgreSQL's quote_ident and quote_literal do. */

/** @throws {RangeError} for a name that PostgreSQL would cut off, or that contains a zero byte. */
export function identifier(name: string): string {
  if (name === '' || name.includes('\0')) throw new RangeError(`the name ${JSON.stringify(name)} is empty or contains a zero byte`)
  if (Buffer.byteLength(name) > 63)
    throw new RangeError(`the name ${JSON.stringify(name)} has more than 63 bytes, which PostgreSQL would cut off`)
  return `"${name.replaceAll('"', '""')}"`
}

export function literal(text: string): string {
  if (text.includes('\0')) throw new RangeError('a value contains a zero byte')
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`
  // With a backslash the E syntax is needed, whatever standard_conforming_strings is.
  return text.includes('\\') ? `E${quoted}` : quoted
}
