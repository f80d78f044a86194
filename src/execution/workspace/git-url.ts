import { fileURLToPath } from 'node:url'

const allowed = 'must be https://host/path, ssh://host/path, file:///path or git@host:path'
const hostPattern = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/

/** A URL that may be handed to git. `host` has the port, if one is given. */
export type GitUrl =
  | { kind: 'https' | 'ssh'; url: string; host: string }
  | { kind: 'file'; url: string; path: string }
  | { kind: 'refused'; why: string }

/**
 * Reads a git URL, strictly: only transports that run no helper of the URL's choosing (`ext::` runs any command), no host or user
 * that ssh would read as an option, no password inside (invariant 9).
 */
export function parseGitUrl(text: string): GitUrl {
  const refuse = (why: string): GitUrl => ({ kind: 'refused', why })
  if (text.startsWith('-')) return refuse(`may not start with "-"; ${allowed}`)
  if (/^[\w+.-]*::/.test(text)) return refuse(`may not name a remote helper such as "ext::"; ${allowed}`)
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) <= 32 || text.charCodeAt(at) === 127) return refuse('may not contain blanks or control characters')
  }
  if (text.length > 2048) return refuse('may not be longer than 2048 characters')

  const scp = /^git@([^:/@]+):([^-].*)$/.exec(text)
  if (scp) return hostPattern.test(scp[1]!) ? { kind: 'ssh', url: text, host: scp[1]! } : refuse(allowed)

  const scheme = /^(https|ssh|file):\/\//.exec(text)?.[1]
  if (!scheme) return refuse(allowed)
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return refuse(allowed)
  }
  if (url.password) return refuse('may not contain a password; put it in a Secret and name it in secretRef')
  if (url.search || url.hash) return refuse('may not contain "?" or "#"')
  if (scheme === 'file') {
    if (url.host !== '') return refuse('file:// URLs may not name a host; use file:///path')
    try {
      const path = fileURLToPath(url)
      // The URL parser drops "..": what came, not what it became, has to be clean.
      return /(^|\/)(\.|%2e){2}(\/|$)/i.test(text) ? refuse('may not contain ".."') : { kind: 'file', url: text, path }
    } catch {
      return refuse(allowed)
    }
  }
  if (!hostPattern.test(url.hostname) && !/^\[[0-9a-f:.]+\]$/i.test(url.hostname)) return refuse(allowed)
  if (url.pathname.length < 2 || url.pathname.startsWith('/-')) return refuse(allowed)
  if (scheme === 'https') {
    // A token is often given as user name: the same secret in the same wrong place.
    if (url.username) return refuse('may not contain a user name; put username and password in a Secret and name it in secretRef')
    return { kind: 'https', url: text, host: url.host }
  }
  if (url.username && !/^[A-Za-z0-9_][\w.-]*$/.test(decodeURIComponent(url.username))) return refuse(allowed)
  return { kind: 'ssh', url: text, host: url.host }
}

/** The URL for people: what stands before the `@` of a URL is replaced. */
export function redactUrl(text: string): string {
  return text.replace(/^([\w+.:-]*\/\/)[^/@]*@/, '$1***@')
}
