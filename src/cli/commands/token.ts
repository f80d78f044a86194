import { workerPoolResource } from '../../api/index.ts'
import { isLoopback, joinTokens } from '../../app/index.ts'
import { formatDuration, parseDuration, rfc3339 } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { joinEndpoint } from '../join-endpoint.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { parseLabels } from '../parse-labels.ts'
import { note, print } from '../terminal.ts'

export type CreateOptions = AccessOptions & { pool: string; ttl: string; uses?: number; label?: string[]; allowLabel?: string[] }

/** `oarlock token create --pool P --ttl 24h`: prints only the token on stdout. */
export async function create({ pool, ttl, uses, label = [], allowLabel = [], ...access }: CreateOptions): Promise<void> {
  await withClient(access, async client => {
    if (!(await client.resource(workerPoolResource).getOrUndefined(pool))) {
      throw new CliError(`WorkerPool "${pool}" not found`, {
        exitCode: exitCodes.notFound,
        hint: '"oarlock get workerpools" lists all pools',
      })
    }
    const { createJoinToken } = await joinTokens()
    const { url, caCertificate, command } = await joinEndpoint(client)
    const terms = { labels: parseLabels(label, 'token create'), allowLabels: allowLabel }
    const token = await createJoinToken(client, caCertificate, { pool, ttlMs: parseDuration(ttl), uses, ...terms }).catch(
      rethrowAsUsageError,
    )
    print(token.text)
    note(
      `token ${token.id} for pool ${pool} expires ${rfc3339(token.expiresAtMs)}${uses ? `, valid for ${uses} uses` : ''}; it cannot be shown again`,
    )
    note(`run on the other machine: oarlock worker --server ${url} --token-file FILE`)
    // URL parts have brackets around an IPv6 address.
    if (isLoopback({ host: new URL(url).hostname.replace(/^\[|\]$/g, '') }))
      note(
        `hint: other machines cannot reach ${url}; start "${command}" with --listen 0.0.0.0:${new URL(url).port} --tls-san NAME, and use https://NAME:${new URL(url).port}`,
      )
  })
}

const listText = (texts: readonly string[]) => texts.join(', ') || '<none>'

function rethrowAsUsageError(error: unknown): never {
  if (error instanceof RangeError) throw new CliError(error.message, { exitCode: exitCodes.usage })
  throw error
}

/** `oarlock token list` */
export async function list(options: AccessOptions & { output?: string; all?: boolean }): Promise<void> {
  await withClient(options, async client => {
    const { listJoinTokens } = await joinTokens()
    const nowMs = Date.now()
    const found = await listJoinTokens(client)
    // Tokens for one name are those that pools create for their workers.
    const tokens = found.filter(({ expiresAtMs, worker }) => options.all || (worker === undefined && expiresAtMs > nowMs))
    if (options.output === 'json' || options.output === 'yaml') {
      // Without the hash, which is of no use to a client.
      print(
        await serialize(
          tokens.map(({ hash: _, expiresAtMs, ...token }) => ({ ...token, expiresAt: rfc3339(expiresAtMs) })),
          options.output,
        ),
      )
      return
    }
    const hidden = found.length - tokens.length
    if (hidden > 0)
      note(
        `${hidden} ${hidden === 1 ? 'token is' : 'tokens are'} not listed: expired, or for workers that pools start; --all lists them too`,
      )
    if (tokens.length === 0) return note('no join tokens found')
    const rows = tokens.map(({ id, pool, expiresAtMs, uses, workers, labels, allowLabels }) => [
      id,
      pool,
      expiresAtMs > nowMs ? formatDuration(Math.round((expiresAtMs - nowMs) / 1_000) * 1_000) : 'expired',
      uses === undefined ? 'unlimited' : String(uses),
      String(workers.length),
      listText(Object.entries(labels).map(([key, value]) => `${key}=${value}`)),
      listText(allowLabels),
    ])
    for (const line of renderTable(['ID', 'POOL', 'EXPIRES IN', 'USES LEFT', 'WORKERS', 'LABELS', 'ALLOWED LABELS'], rows)) print(line)
  })
}

/** `oarlock token revoke ID` */
export async function revoke(ids: string[], { keepWorkers, ...access }: AccessOptions & { keepWorkers?: boolean }): Promise<void> {
  await withClient(access, async client => {
    const { parseJoinToken, revokeJoinToken } = await joinTokens()
    for (const typed of ids) {
      // The whole token is accepted too.
      const id = parseJoinToken(typed)?.id ?? typed
      const revoked = await revokeJoinToken(client, id, { keepWorkers })
      if (!revoked)
        throw new CliError(`join token "${id}" not found`, { exitCode: exitCodes.notFound, hint: '"oarlock token list" lists all tokens' })
      print(`token ${id} revoked`)
      for (const name of revoked.workers) print(`worker/${name}: credential revoked`)
    }
  })
}
