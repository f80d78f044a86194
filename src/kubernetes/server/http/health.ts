/** The health checks; only `readyz` checks that the disk has space and that the server is not shutting down: a restart does not help. */
export type HealthChecks = {
  /** Why nothing can be written any more, if so: only a restart helps. */
  storageFailure(): string | undefined
  /** Why writes are rejected until there is more space. */
  fullDisk(): string | undefined
  isStopping(): boolean
}

export type HealthResponse = { code: 200 | 404 | 500; text: string }

const endpoints = new Set(['healthz', 'livez', 'readyz'])

/** True for `/healthz`, `/livez`, `/readyz`, which need no credentials; the paths below them do. */
export function isHealthPath(path: string): boolean {
  return endpoints.has(path.slice(1))
}

/**
 * The response to `/livez`, `/readyz?verbose`, `/readyz?exclude=storage` and `/livez/ping`, as of kube-apiserver; undefined for any other
 * path.
 */
export function readHealth(path: string, query: URLSearchParams | undefined, checks: HealthChecks): HealthResponse | undefined {
  const [, endpoint = '', name, ...more] = path.split('/')
  if (!endpoints.has(endpoint) || more.length > 0) return undefined
  const all: [name: string, failure: string | undefined][] = [
    ['ping', undefined],
    ['storage', checks.storageFailure()],
  ]
  if (endpoint === 'readyz')
    all.push(['disk', checks.fullDisk()], ['shutdown', checks.isStopping() ? 'process is shutting down' : undefined])
  if (name !== undefined) {
    const one = all.find(([known]) => known === name)
    if (!one) return { code: 404, text: '404 page not found\n' }
    return one[1] === undefined ? { code: 200, text: 'ok' } : { code: 500, text: `internal server error: ${one[1]}\n` }
  }
  const excluded = new Set(query?.getAll('exclude'))
  let isHealthy = true
  let report = ''
  for (const [check, failure] of all) {
    if (excluded.delete(check)) report += `[+]${check} excluded: ok\n`
    else if (failure === undefined) report += `[+]${check} ok\n`
    else {
      isHealthy = false
      report += `[-]${check} failed: ${failure}\n`
    }
  }
  for (const unknown of excluded) report += `warn: some health checks cannot be excluded: no matches for ${JSON.stringify(unknown)}\n`
  if (!isHealthy) return { code: 500, text: `${report}${endpoint} check failed\n` }
  return query?.has('verbose') ? { code: 200, text: `${report}${endpoint} check passed\n` } : { code: 200, text: 'ok' }
}
