import { pathToFileURL } from 'node:url'

/** Where the requests to a server go: their URLs start with `baseUrl`, and with `socketPath` they use that Unix socket. */
export type ServerAddress = { baseUrl: string; socketPath?: string }

/**
 * Parses the URL of a server: `https://…` and `http://…`, or `unix:///path` for HTTP without TLS over a Unix socket. Slashes at the end
 * are removed. The caller validates URLs of the first two kinds.
 * @throws {TypeError} if a `unix:` URL is not an absolute path only.
 */
export function parseServerAddress(url: string): ServerAddress {
  if (!isUnixUrl(url)) return { baseUrl: url.replace(/\/+$/, '') }
  // A path without a question mark and a hash: those would be a query and a fragment.
  const [, path] = /^unix:\/\/(\/[^?#]*[^?#/])\/*$/.exec(url) ?? []
  try {
    if (path !== undefined) return { baseUrl: 'http://localhost', socketPath: decodeURIComponent(path) }
  } catch {
    // A percent sign that encodes nothing.
  }
  throw new TypeError(`URL ${JSON.stringify(url)} must be unix:// and an absolute path, such as unix:///var/lib/oarlock/api.sock`)
}

/**
 * Options of an `Agent` of node:http for a Unix socket. Without a server name the agent would look for an IP address in the Host header,
 * with a regular expression that takes 4 ms to compile.
 */
export const socketAgentOptions = (socketPath: string) => ({ socketPath, servername: '' })

export const isUnixUrl = (url: string): boolean => url.startsWith('unix:')

/** `unix:///path`; characters with a meaning in URLs are percent-encoded. */
export const unixSocketUrl = (path: string): string => pathToFileURL(path).href.replace('file:', 'unix:')
