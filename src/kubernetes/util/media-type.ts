/** The media type of a `Content-Type`, without its parameters, in lower case: names of types have no case (RFC 9110). Empty without one. */
export function mediaType(contentType: string | undefined): string {
  if (!contentType) return ''
  const end = contentType.indexOf(';')
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
}
