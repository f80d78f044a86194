import type { Target } from './target.ts'

export type Actor = 'anonymous' | 'account' | 'stack author' | 'local worker' | 'joined worker'

/** One attempt to break a promise of SECURITY.md on a running `oarlock up`. */
export type Attack = {
  name: string
  actor: Actor
  /** A row of the table "Promises" in SECURITY.md. */
  promise: string
  /** It takes more than a second, or so many resources that other attacks would notice: only in the bench. */
  slow?: true
  /** A sentence of SECURITY.md, without markup, about what this attack gains. */
  limit?: string
  /**
   * Attempts it, and returns what was gained: each entry is proven by what the attacker received, or by what changed outside of the
   * attacker's reach. Nothing was gained if the promise holds.
   * @throws {NotRunHere} if this machine cannot show it.
   */
  attempt(target: Target): Promise<readonly string[]>
}

/** The attack is not possible on this machine, or proves nothing there. */
export class NotRunHere extends Error {}

export type Outcome =
  | { result: 'held' }
  | { result: 'gained' | 'documented limit'; gained: readonly string[] }
  | { result: 'not run here'; reason: string }
  | { result: 'error'; reason: string }

export async function runAttack(attack: Attack, target: Target): Promise<Outcome> {
  try {
    const gained = await attack.attempt(target)
    if (gained.length === 0) return { result: 'held' }
    return { result: attack.limit ? 'documented limit' : 'gained', gained }
  } catch (error) {
    const reason = (error as Error).message
    return { result: error instanceof NotRunHere ? 'not run here' : 'error', reason }
  }
}
