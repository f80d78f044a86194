import { workerPoolResource } from '../../api/index.ts'
import { joinTokens } from '../../app/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { formatDuration, parseDuration, rfc3339 } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialise } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'

export type CreateOptions = AccessOptions & { pool: string; ttl: string; uses?: number; label?: string[]; allowLabel?: string[] }

/** `oarlock token create --pool P --ttl 24h`: prints the token, and nothing else, on stdout. */
export async function create({ pool, ttl, uses, label = [], allowLabel = [], ...access }: CreateOptions): Promise<void> {
  await withClient(access, async client => {
    if (!(await client.resource(workerPoolResource).getOrUndefined(pool))) {
      throw new CliError(`pool "${pool}" not found`, { exitCode: exitCodes.notFound, hint: '"oarlock get pools" lists them' })
    }
    const { createJoinToken } = await joinTokens()
    const terms = { labels: pairsOf(label), allowLabels: allowLabel }
    const token = await createJoinToken(client, await caOf(client), { pool, ttlMs: parseDuration(ttl), uses, ...terms }).catch(explain)
    print(token.text)
    note(
      `token ${token.id} is good for pool ${pool} until ${rfc3339(token.expiresAtMs)}${uses ? `, ${uses} times` : ''}; it is shown only now`,
    )
    note(`on the other machine: oarlock worker --server ${client.server} --token-file FILE`)
  })
}

function pairsOf(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    words.map(word => {
      const at = word.indexOf('=')
      if (at <= 0) throw new CliError(`--label must be key=value, got "${word}"`, { exitCode: exitCodes.usage })
      return [word.slice(0, at), word.slice(at + 1)]
    }),
  )
}

function explain(error: unknown): never {
  if (error instanceof RangeError) throw new CliError(error.message, { exitCode: exitCodes.usage })
  throw error
}

/** `oarlock token list` */
export async function list(options: AccessOptions & { output?: string }): Promise<void> {
  await withClient(options, async client => {
    const { listJoinTokens, formatTerms } = await joinTokens()
    const tokens = await listJoinTokens(client)
    if (options.output === 'json' || options.output === 'yaml') {
      // Not even the hash: it is nobody's business.
      print(
        await serialise(
          tokens.map(({ hash: _, expiresAtMs, ...token }) => ({ ...token, expiresAt: rfc3339(expiresAtMs) })),
          options.output,
        ),
      )
      return
    }
    if (tokens.length === 0) return note('there are no join tokens')
    const nowMs = Date.now()
    const rows = tokens.map(({ id, pool, expiresAtMs, uses, workers, ...terms }) => [
      id,
      pool,
      expiresAtMs > nowMs ? formatDuration(Math.round((expiresAtMs - nowMs) / 1_000) * 1_000) : 'over',
      uses === undefined ? 'any' : String(uses),
      String(workers.length),
      formatTerms(terms),
    ])
    for (const line of renderTable(['ID', 'POOL', 'ENDS IN', 'USES LEFT', 'WORKERS', 'LABELS'], rows)) print(line)
  })
}

/** `oarlock token revoke ID`, `oarlock token revoke --worker NAME` */
export async function revoke(
  ids: string[],
  { worker: names = [], keepWorkers, ...access }: AccessOptions & { worker?: string[]; keepWorkers?: boolean },
): Promise<void> {
  await withClient(access, async client => {
    const { parseJoinToken, revokeJoinToken, revokeWorker } = await joinTokens()
    for (const typed of ids) {
      // Who has the whole token at hand may give that.
      const id = parseJoinToken(typed)?.id ?? typed
      const revoked = await revokeJoinToken(client, id, { keepWorkers })
      if (!revoked)
        throw new CliError(`join token "${id}" not found`, { exitCode: exitCodes.notFound, hint: '"oarlock token list" shows them' })
      print(`token ${id} is revoked`)
      for (const name of revoked.workers) print(`worker/${name} has no credential any more`)
    }
    for (const name of names) {
      if (!(await revokeWorker(client, name))) {
        throw new CliError(`worker "${name}" has no credential of a join token`, { exitCode: exitCodes.notFound })
      }
      print(`worker/${name} has no credential any more`)
    }
  })
}

async function caOf(client: Client): Promise<string> {
  return await (await client.request({ method: 'GET', path: '/join/ca' })).text()
}
