import { WorkerOptionError } from './worker-option-error.ts'

/** Always passed to engines: what a program needs to reach the network and to print text. No credentials. */
const defaultNames = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'LANG',
  'LC_ALL',
  'TZ',
]

/** Never passed, whatever the pool allows: the worker's own settings and credentials, and the directories that each Run has of its own. */
const isReserved = (name: string): boolean => name.startsWith('OARLOCK_') || name === 'HOME' || name === 'TMPDIR'

/** The same rule as in the schema of a WorkerPool. */
const patternSyntax = /^[A-Za-z_][A-Za-z0-9_]*\*?$/

/**
 * Values of these are not masked in logs: region and file names are no secrets, and a log without them is hard to read.
 * Everything else is masked, because there is no complete list of names of credentials (invariant 9).
 */
const publicNames = /(^|_)(REGION|ZONE|LOCATION|PROJECT|PROFILE|ENVIRONMENT|CONFIG|FILE|PATH|DIR|KUBECONFIG)$/i
/** Shorter values are flags such as `true` and `1`: masking them would garble the log. */
const minMaskedLength = 8

export type EngineEnvironment = {
  env: Record<string, string>
  /** Names in `env` that the patterns selected. */
  selected: string[]
  /** Values of `env` to mask in logs, status and error messages (invariant 9). */
  secrets: string[]
}

/**
 * The part of the worker's own environment that engines get: {@link defaultNames}, and what `patterns` select.
 * A pattern is a name, or a prefix followed by `*`, such as `AWS_*`.
 */
export function selectEngineEnvironment(
  workerEnv: Readonly<Record<string, string | undefined>>,
  patterns: readonly string[],
): EngineEnvironment {
  const env: Record<string, string> = {}
  const selected: string[] = []
  const secrets: string[] = []
  for (const [name, value] of Object.entries(workerEnv)) {
    if (value === undefined || isReserved(name)) continue
    const isDefault = defaultNames.includes(name)
    if (!isDefault && !patterns.some(pattern => matches(name, pattern))) continue
    env[name] = value
    if (!isDefault) selected.push(name)
    if (!isDefault && value.length >= minMaskedLength && !publicNames.test(name)) secrets.push(value)
  }
  return { env, selected, secrets }
}

/**
 * Reads OARLOCK_ENGINE_ENVIRONMENT: patterns separated by commas. Empty text selects nothing.
 * @throws {WorkerOptionError} naming the pattern and what is allowed.
 */
export function parseEngineEnvironment(text: string): string[] {
  const patterns = text
    .split(',')
    .map(part => part.trim())
    .filter(Boolean)
  for (const pattern of patterns) {
    const got = `OARLOCK_ENGINE_ENVIRONMENT ${JSON.stringify(pattern)}`
    if (!patternSyntax.test(pattern)) {
      throw new WorkerOptionError(`${got} must be the name of an environment variable, or a prefix followed by "*", such as AWS_*`)
    }
    if (isReserved(pattern)) {
      throw new WorkerOptionError(`${got} must not select HOME, TMPDIR or OARLOCK_*, which are never passed to engines`)
    }
  }
  return patterns
}

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}
