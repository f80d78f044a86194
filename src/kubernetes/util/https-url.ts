/** Why a URL is no address to send credentials to; undefined if it is one. The URL is not in the message: it may contain a password. */
export function httpsUrlError(text: string): string | undefined {
  const url = /^https:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  const isValid = url !== undefined && url.username === '' && url.password === '' && !/[?#@\s]/.test(text)
  return isValid ? undefined : 'must be an https:// URL without user, query or fragment'
}
