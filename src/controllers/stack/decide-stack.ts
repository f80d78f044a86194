import { buildDecision } from './build-decision.ts'
import { chooseNext } from './choose-next.ts'
import type { StackDecision, StackInput } from './decision.ts'
import { foldFacts } from './facts.ts'

/**
 * Decides what a Stack needs next and what its status reports, in three steps. Each takes the result of the one before, changes
 * nothing of it, and none is repeated: fold what happened, choose what is next, put it into the words of a status.
 *
 * It is idempotent: deciding again on its own outcome changes nothing. At most one Run of a Stack is active at any time, so at
 * most one may write (invariant 1), and each has a number, its epoch, higher than all before (invariant 3).
 */
export function decideStack(input: StackInput): StackDecision {
  const facts = foldFacts(input)
  const next = chooseNext(facts)
  return buildDecision(facts, next)
}
