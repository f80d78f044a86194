/**
 * A URL for messages: without user and password. Also of text that is not a URL because the password has characters that must be
 * encoded, such as `/`.
 */
export function hideCredentials(url: string): string {
  if (!URL.canParse(url)) return url.replace(/\/\/.*@/, '//***@')
  const { username, password } = new URL(url)
  return username === '' && password === '' ? url : url.replace(/\/\/[^/]*@/, '//***@')
}
