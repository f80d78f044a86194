import { fileURLToPath } from 'node:url'

const allowed = 'must be https://host/path, ssh://host/path, file:///path or git@host:path'
const hostPattern = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/

/** A URL that may be passed to git. `host` includes the port, if there is one. */
export type GitUrl =
  | { kind: 'https' | 'ssh'; url: string; host: string }
  | { kind: 'file'; url: string; path: string }
  | { kind: 'invalid'; reason: string }

/**
 * Parses a git URL strictly: only transports that do not run a helper named in the URL (`ext::` runs any command), no host or user that
 * ssh would parse as an option, and no password (invariant 9).
 */
export function parseGitUrl(text: string): GitUrl {
  const invalid = (reason: string): GitUrl => ({ kind: 'invalid', reason })
  if (text.startsWith('-')) return invalid(`must not start with "-"; ${allowed}`)
  if (/^[\w+.-]*::/.test(text)) return invalid(`must not name a remote helper such as "ext::"; ${allowed}`)
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) <= 32 || text.charCodeAt(at) === 127) return invalid('must not contain spaces or control characters')
  }
  if (text.length > 2048) return invalid('must not be longer than 2048 characters')

  const scp = /^git@([^:/@]+):([^-].*)$/.exec(text)
  if (scp) return hostPattern.test(scp[1]!) ? { kind: 'ssh', url: text, host: scp[1]! } : invalid(allowed)

  const scheme = /^(https|ssh|file):\/\//.exec(text)?.[1]
  if (!scheme) return invalid(allowed)
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return invalid(allowed)
  }
  if (url.password) return invalid('must not contain a password; put it in a Secret and name it in secretRef')
  if (url.search || url.hash) return invalid('must not contain "?" or "#"')
  if (scheme === 'file') {
    if (url.host !== '') return invalid('file:// URLs must not name a host; use file:///path')
    try {
      const path = fileURLToPath(url)
      // The URL parser resolves "..", so the original text is checked.
      return /(^|\/)(\.|%2e){2}(\/|$)/i.test(text) ? invalid('must not contain ".."') : { kind: 'file', url: text, path }
    } catch {
      return invalid(allowed)
    }
  }
  if (!hostPattern.test(url.hostname) && !/^\[[0-9a-f:.]+\]$/i.test(url.hostname)) return invalid(allowed)
  if (url.pathname.length < 2 || url.pathname.startsWith('/-')) return invalid(allowed)
  if (scheme === 'https') {
    // A token is often given as user name: that is a secret in the URL, too.
    if (url.username) return invalid('must not contain a user name; put username and password in a Secret and name it in secretRef')
    return { kind: 'https', url: text, host: url.host }
  }
  if (url.username && !/^[A-Za-z0-9_][\w.-]*$/.test(decodeURIComponent(url.username))) return invalid(allowed)
  return { kind: 'ssh', url: text, host: url.host }
}

/** The URL for messages: user name and password are replaced by `***`. */
export function redactUrl(text: string): string {
  return text.replace(/^([\w+.:-]*\/\/)[^/@]*@/, '$1***@')
}

/** The URL as git gets it. */
export function remoteOf(url: GitUrl): string {
  if (url.kind === 'invalid') throw new TypeError('an invalid URL has no remote')
  return url.kind === 'file' ? `file://${url.path.split('/').map(encodeURIComponent).join('/')}` : url.url
}
