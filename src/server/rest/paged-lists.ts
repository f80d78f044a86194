import { randomBytes } from 'node:crypto'
import { badRequest, StatusError } from '../../kube/index.ts'
import type { Entry } from '../storage/index.ts'

type Snapshot = { entries: readonly Entry[]; revision: number; expiresMs: number }

const keptMs = 5 * 60_000
const keptAfterEndMs = 30_000
const maxKept = 128

/**
 * Lists under way, page by page. Entries never change, so a snapshot is an array of references: cheap to keep and
 * exactly consistent. They are dropped after five minutes, or when there are too many (invariant 10); a client that
 * comes later gets 410 and lists again.
 */
export class PagedLists {
  readonly #kept = new Map<string, Snapshot>()

  /** Keeps what is left after the first page; returns its continue token. */
  keep(entries: readonly Entry[], revision: number, offset: number, nowMs: number): string {
    for (const [id, { expiresMs }] of this.#kept) if (expiresMs <= nowMs) this.#kept.delete(id)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size >= maxKept && oldest !== undefined) this.#kept.delete(oldest)
    const id = randomBytes(12).toString('base64url')
    this.#kept.set(id, { entries, revision, expiresMs: nowMs + keptMs })
    return tokenOf(id, offset)
  }

  /** @throws {StatusError} Expired when the snapshot is gone, BadRequest for a token that is not ours. */
  resume(token: string, nowMs: number): { id: string; entries: readonly Entry[]; revision: number; offset: number } {
    const [id, at] = Buffer.from(token, 'base64url').toString().split(':')
    const offset = Number(at)
    if (!id || !at || !Number.isSafeInteger(offset) || offset < 0)
      throw badRequest(`continue key is not valid: ${JSON.stringify(token.slice(0, 80))}`)
    const snapshot = this.#kept.get(id)
    if (!snapshot || snapshot.expiresMs <= nowMs) {
      throw new StatusError(
        'Expired',
        'The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.',
      )
    }
    return { id, entries: snapshot.entries, revision: snapshot.revision, offset }
  }

  next(id: string, offset: number): string {
    return tokenOf(id, offset)
  }

  /** After the last page: kept for a moment, so that a client whose connection broke may ask for a page again. */
  finish(id: string, nowMs: number): void {
    const snapshot = this.#kept.get(id)
    if (snapshot) snapshot.expiresMs = Math.min(snapshot.expiresMs, nowMs + keptAfterEndMs)
  }
}

function tokenOf(id: string, offset: number): string {
  return Buffer.from(`${id}:${offset}`).toString('base64url')
}
