/** Codes of errors that Node has no code for. */
export type ClientErrorCode =
  | 'ERR_CONNECT_TIMEOUT'
  | 'ERR_CONNECTION_CLOSED'
  | 'ERR_INVALID_HTTP_RESPONSE'
  | 'ERR_RESPONSE_BODY_TIMEOUT'
  | 'ERR_RESPONSE_TIMEOUT'

/**
 * A request without a response: connection refused or broken, a timeout, or a certificate that was not accepted. `code` is
 * Node's (`ECONNREFUSED`, …) or a {@link ClientErrorCode}; the original error is the `cause`.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: string

  constructor(server: string, request: string, cause: unknown) {
    const { code, message } = unwrap(cause)
    const mayBeTls = (code === 'ERR_CONNECTION_CLOSED' || code === 'ERR_INVALID_HTTP_RESPONSE') && server.startsWith('http:')
    const hint = mayBeTls ? plaintextHint : hints[code]
    super(`${request} on ${server}: ${messages[code] ?? message}${hint ? ` (${code}): ${hint}` : ` (${code})`}`, { cause })
    this.code = code
  }
}

/** Rejects every request after `client.close()`: nothing was sent, and a retry cannot succeed. */
export class ClientClosedError extends Error {
  override readonly name = 'ClientClosedError'

  constructor() {
    super('the client is closed: close it after everything that uses it')
  }
}

/** An error with a `code` that {@link ConnectionError} explains. */
export function withCode(message: string, code: ClientErrorCode | 'ECONNRESET'): Error {
  return Object.assign(new Error(message), { code })
}

/** True for a connection that broke during the request: a retry is likely to succeed. */
export function isReset(code: string): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'ERR_CONNECTION_CLOSED' || code === 'ERR_INVALID_HTTP_RESPONSE'
}

const messages: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOENT: 'the Unix socket does not exist',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the name server does not respond',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed by the server',
  ERR_CONNECTION_CLOSED: 'connection closed by the server',
  ERR_CONNECT_TIMEOUT: 'connect timed out',
  ERR_RESPONSE_TIMEOUT: 'the response timed out',
  ERR_RESPONSE_BODY_TIMEOUT: 'the response body stalled',
}

const certificateHint = 'is certificate-authority in the kubeconfig correct?'

const plaintextHint = 'if the server expects TLS, its address must begin with https://'

const protocolHint = 'does the server expect TLS, and does its address begin with the right one of https:// and http://?'

const serverHint = 'is the server running, and is its address correct?'

const hints: Record<string, string> = {
  ECONNREFUSED: serverHint,
  ENOENT: serverHint,
  ENOTFOUND: 'is the host name in the kubeconfig correct?',
  ERR_CONNECT_TIMEOUT: 'is there a firewall or VPN in between?',
  ERR_RESPONSE_TIMEOUT: 'is the server overloaded? requestTimeoutMs sets how long to wait',
  SELF_SIGNED_CERT_IN_CHAIN: certificateHint,
  DEPTH_ZERO_SELF_SIGNED_CERT: certificateHint,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: certificateHint,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: certificateHint,
  CERT_SIGNATURE_FAILURE: certificateHint,
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the client certificate and the client key do not match',
  CERT_HAS_EXPIRED: "renew the server's certificate, or correct this machine's clock",
  ERR_TLS_CERT_ALTNAME_INVALID: 'set tls-server-name, or use an address that the certificate covers',
  EPROTO: protocolHint,
  ERR_SSL_WRONG_VERSION_NUMBER: protocolHint,
}

/** Node wraps the specific error when it tries several addresses (happy eyeballs): returns the innermost one with a code. */
function unwrap(error: unknown): { code: string; message: string } {
  let found = { code: 'UNKNOWN', message: String(error) }
  let current: unknown = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    const { code } = current as NodeJS.ErrnoException
    if (typeof code === 'string') found = { code, message: current.message || code }
    else if (found.code === 'UNKNOWN') found = { code: 'UNKNOWN', message: current.message }
    current = current instanceof AggregateError ? current.errors[0] : current.cause
  }
  return found
}
