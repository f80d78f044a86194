/**
 * A request that got no answer: refused, cut, timed out, or a certificate that was not accepted. `code` is Node's
 * (`ECONNREFUSED`, …), or one of ours in undici's spelling (`UND_ERR_HEADERS_TIMEOUT`, …); the original error is the `cause`.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: string

  constructor(server: string, request: string, cause: unknown) {
    const { code, message } = unwrap(cause)
    const hint = code === 'UND_ERR_SOCKET' && server.startsWith('http:') ? plainHint : hints[code]
    super(`${request} on ${server}: ${plain[code] ?? message}${hint ? ` (${code}): ${hint}` : ` (${code})`}`, { cause })
    this.code = code
  }
}

/** What every request after `client.close()` ends with: nothing was sent, and trying again cannot help. */
export class ClientClosedError extends Error {
  override readonly name = 'ClientClosedError'

  constructor() {
    super('the client is closed: close it after everything that uses it has ended')
  }
}

/** An error with the `code` that {@link ConnectionError} explains. */
export function withCode(message: string, code: string): Error {
  return Object.assign(new Error(message), { code })
}

/** True for a connection that broke under way, where sending again is likely to help. */
export function isReset(code: string): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET'
}

const plain: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the name server does not answer',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection closed by the server',
  UND_ERR_SOCKET: 'connection closed by the server',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer in time',
  UND_ERR_BODY_TIMEOUT: 'the answer stopped in the middle',
}

const certificateHint = 'is the right certificate-authority in the kubeconfig?'

const plainHint = 'if the server speaks TLS, its address must begin with https://'

const hints: Record<string, string> = {
  ECONNREFUSED: 'is the server running, and is its address right?',
  ENOTFOUND: 'is the host name in the kubeconfig right?',
  UND_ERR_CONNECT_TIMEOUT: 'is there a firewall or VPN in between?',
  UND_ERR_HEADERS_TIMEOUT: 'is the server overloaded? requestTimeoutMs sets how long to wait',
  SELF_SIGNED_CERT_IN_CHAIN: certificateHint,
  DEPTH_ZERO_SELF_SIGNED_CERT: certificateHint,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: certificateHint,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: certificateHint,
  CERT_SIGNATURE_FAILURE: certificateHint,
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the client certificate and the client key do not belong together',
  CERT_HAS_EXPIRED: "the server's certificate must be renewed, or this machine's clock is wrong",
  ERR_TLS_CERT_ALTNAME_INVALID: 'set tls-server-name, or use an address that the certificate names',
  EPROTO: 'does the server speak TLS, and is the address https:// or http:// as it should be?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does the server speak TLS, and is the address https:// or http:// as it should be?',
}

/** Node's happy eyeballs wrap the telling error: find the innermost one with a code. */
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
