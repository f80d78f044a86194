import type { Target } from './target.ts'

export type Actor = 'anonymous' | 'account' | 'stack author' | 'local worker' | 'joined worker' | 'worker Pod'

/** One attempt to break a promise of SECURITY.md on a running `oarlock up`. */
export type Attack = {
  name: string
  actor: Actor
  /** A row of the table "Promises" in SECURITY.md. */
  promise: string
  /** It takes more than a second, or so many resources that other attacks would notice: only in the bench. */
  slow?: true
  /** What this attack gains, exactly, and a sentence of SECURITY.md, without markup, that documents it. */
  limit?: { sentence: string; gained: readonly string[] }
  /**
   * Attempts it, and returns what was gained: each entry is proven by what the attacker received, or by what changed outside of the
   * attacker's reach. Nothing was gained if the promise holds, and if the attack does not work: `control` tells these apart.
   * @throws {NotRunHere} if this machine cannot show it.
   */
  attempt(target: Target, control: Control): Promise<readonly string[]>
}

/**
 * Records whether the attempt works where it is allowed: the request of the rightful owner is answered otherwise, the same program has an
 * effect where it may have one.
 */
export type Control = (worked: boolean, what: string) => void

/** The attack is not possible on this machine, or proves nothing there. */
export class NotRunHere extends Error {}

export type Outcome =
  | { result: 'held' }
  | { result: 'gained' | 'documented limit'; gained: readonly string[] }
  | { result: 'not run here'; reason: string }
  | { result: 'broken' | 'error'; reason: string }

/** The outcome is `broken`, which is no better than `gained`, if a control does not work or there is none. */
export async function runAttack(attack: Pick<Attack, 'attempt' | 'limit'>, target: Target): Promise<Outcome> {
  let controls = 0
  const broken: string[] = []
  const control: Control = (worked, what) => {
    controls++
    if (!worked) broken.push(what)
  }
  try {
    const gained = [...new Set(await attack.attempt(target, control))]
    if (gained.length > 0) return { result: isDocumented(attack, gained) ? 'documented limit' : 'gained', gained }
    if (controls === 0) return { result: 'broken', reason: 'it has no control' }
    return broken.length > 0 ? { result: 'broken', reason: `control: ${broken.join('; ')}` } : { result: 'held' }
  } catch (error) {
    const reason = (error as Error).message
    return { result: error instanceof NotRunHere ? 'not run here' : 'error', reason }
  }
}

function isDocumented({ limit }: Pick<Attack, 'limit'>, gained: readonly string[]): boolean {
  return limit !== undefined && [...gained].sort().join('\n') === [...limit.gained].sort().join('\n')
}
