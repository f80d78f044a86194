import { expectedStateVersion, type Stack } from '../../api/index.ts'
import type { StackDecision, StackInput, StateCheck } from './decision.ts'

/** Reads from the stores whether they have a state of at least this version. Rejects if they do not answer. */
export type CheckState = (stack: Stack, expectedVersion: number) => Promise<StateCheck>

/** After this time a Stack without its state is checked again: that a user has uploaded it is no change of an object. */
export const stateRecheckMs = 10_000

/**
 * What the stores have of the states of Stacks. A Stack is checked once by each process, so that a directory of stores that was put back is noticed
 * without a Run, and before each Run.
 */
export class StateChecks {
  readonly #check: CheckState | undefined
  readonly #known = new Map<string, StateCheck>()

  /** @param check undefined where the controllers cannot read the stores: then only these reject a Run. */
  constructor(check: CheckState | undefined) {
    this.#check = check
  }

  /** Decides with what is known of the state, and again if that must be checked for the decision. */
  async decide(input: StackInput, decide: (input: StackInput) => StackDecision): Promise<StackDecision> {
    const { stack } = input
    const known = this.#known.get(stack.metadata.uid)
    const decision = decide({ ...input, state: known })
    const expected = expectedStateVersion({ ...stack, status: decision.status })
    if (expected === 0 && known) {
      // Its state is not stored here any more, as with `spec.state: External`: what was wrong with it does not matter.
      this.#known.delete(stack.metadata.uid)
      return decide({ ...input, state: undefined })
    }
    if (!this.#check || expected === 0 || (known && !known.error && !decision.createRun)) return decision
    try {
      const state = await this.#check(stack, expected)
      this.#known.set(stack.metadata.uid, state)
      const checked = decide({ ...input, state })
      if (!state.error) return checked
      return { ...checked, requeueAfterMs: Math.min(checked.requeueAfterMs ?? stateRecheckMs, stateRecheckMs) }
    } catch {
      // The stores check the Run too.
      return decision
    }
  }

  delete(uid: string): void {
    this.#known.delete(uid)
  }
}
