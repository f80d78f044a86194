import { annotations, expectedStateVersion, isMutating, pendingImport, type Stack } from '../../api/index.ts'
import type { StackDecision, StackInput, StateCheck } from './decision.ts'

/** Reads from the stores whether they have a state of at least this version, and whether a user has locked it. Rejects if they do not answer. */
export type CheckState = (stack: Stack, expectedVersion: number) => Promise<StateCheck>

/** After this time a Stack without its state is checked again: that a user has uploaded it is no change of an object. */
export const stateRecheckMs = 10_000

/** After this time a Stack whose Run waits for a lock is checked again: releasing it is no change of an object. */
export const lockRecheckMs = 3_000

/** For stores that run apart, which can be replaced while this process runs. */
export type StateCheckRate = {
  /** A Stack that needs no Run is checked again after this time. */
  readonly intervalMs: number
  /** Checks of such Stacks per second; the others are delayed. */
  readonly perSecond: number
}

type Known = { readonly state: StateCheck; readonly checkedAtMs: number }

/** Stacks whose check was delayed or failed are checked after this time, more or less, so that they do not come together. */
const delayedCheckMs = 20_000

/**
 * What the stores have of the states of Stacks. A Stack is checked once by each process, so that a directory of stores that was put back is noticed
 * without a Run, before each Run, and with a rate at its interval. A lock is read before each Run that would need it, and never remembered.
 */
export class StateChecks {
  readonly #check: CheckState | undefined
  readonly #rate: StateCheckRate | undefined
  readonly #nowMs: () => number
  readonly #known = new Map<string, Known>()
  /** Checks of idle Stacks that are allowed now: at most a second of them. */
  #allowed: number
  #allowedAtMs: number

  /** @param check undefined where the controllers cannot read the stores: then only these reject a Run. */
  constructor(
    check: CheckState | undefined,
    { rate, nowMs = () => performance.now() }: { rate?: StateCheckRate | undefined; nowMs?: () => number } = {},
  ) {
    this.#check = check
    this.#rate = rate
    this.#nowMs = nowMs
    this.#allowed = rate?.perSecond ?? 0
    this.#allowedAtMs = nowMs()
  }

  /** Decides with what is known of the state, and again if that must be checked for the decision. */
  async decide(input: StackInput, decide: (input: StackInput) => StackDecision): Promise<StackDecision> {
    const lineage = await this.#storedImport(input.stack)
    if (lineage === undefined) return await this.#decide(input, decide)
    const stack = withImportedState(input.stack, lineage)
    return { ...(await this.#decide({ ...input, stack }, decide)), completeImport: lineage }
  }

  /**
   * The lineage of an import that is recorded as pending although its state is stored: the command was killed in between. From then on the Stack requires
   * that state, as after any import. Undefined while a user holds the lock, which an import does while it writes.
   */
  async #storedImport(stack: Stack): Promise<string | undefined> {
    const imported = stack.metadata.annotations?.[annotations.importedState]
    if (!this.#check || !imported?.startsWith(pendingImport)) return undefined
    try {
      const { error, lock } = await this.#check(stack, 1)
      return error || lock ? undefined : imported.slice(pendingImport.length)
    } catch {
      return undefined
    }
  }

  async #decide(input: StackInput, decide: (input: StackInput) => StackDecision): Promise<StackDecision> {
    const { stack } = input
    const { uid } = stack.metadata
    const known = this.#known.get(uid)
    const decision = decide({ ...input, state: known?.state })
    const expected = expectedStateVersion({ ...stack, status: decision.status })
    // Of an update that was cut off before its Run has reported a version.
    const isUnreadable = known?.state.error?.reason === 'JournalUnreadable' && stack.spec.state !== 'External'
    if (expected === 0 && known && !isUnreadable) {
      // Its state is not stored here any more, as with `spec.state: External`: what was wrong with it does not matter.
      this.#known.delete(uid)
      return decide({ ...input, state: undefined })
    }
    const needsLock = decision.createRun !== undefined && isMutating(decision.createRun.spec.type)
    const isUrgent = needsLock || (expected > 0 && decision.createRun !== undefined)
    const dueInMs = expected > 0 || isUnreadable ? this.#dueInMs(known) : Number.POSITIVE_INFINITY
    if (!this.#check) return decision
    if (!isUrgent && dueInMs > 0) return requeued(decision, dueInMs)
    if (!isUrgent && !this.#mayCheckIdle()) return requeued(decision, delayedCheckMs * (0.5 + input.jitter))
    try {
      const state = await this.#check(stack, expected)
      const { error, lock } = state
      if (expected > 0 || error) this.#known.set(uid, { state: error ? { error } : {}, checkedAtMs: this.#nowMs() })
      else if (!lock && !isUnreadable) return decision
      const recheckMs = error ? stateRecheckMs : needsLock && lock ? lockRecheckMs : (this.#rate?.intervalMs ?? Number.POSITIVE_INFINITY)
      return requeued(decide({ ...input, state }), recheckMs)
    } catch {
      // The stores check the Run too.
      return this.#rate && expected > 0 ? requeued(decision, delayedCheckMs * (0.5 + input.jitter)) : decision
    }
  }

  delete(uid: string): void {
    this.#known.delete(uid)
  }

  #dueInMs(known: Known | undefined): number {
    if (!known || known.state.error) return 0
    return this.#rate ? known.checkedAtMs + this.#rate.intervalMs - this.#nowMs() : Number.POSITIVE_INFINITY
  }

  #mayCheckIdle(): boolean {
    if (!this.#rate) return true
    const { perSecond } = this.#rate
    const nowMs = this.#nowMs()
    this.#allowed = Math.min(perSecond, this.#allowed + ((nowMs - this.#allowedAtMs) / 1_000) * perSecond)
    this.#allowedAtMs = nowMs
    if (this.#allowed < 1) return false
    this.#allowed--
    return true
  }
}

function requeued(decision: StackDecision, afterMs: number): StackDecision {
  if (afterMs === Number.POSITIVE_INFINITY) return decision
  return { ...decision, requeueAfterMs: Math.min(decision.requeueAfterMs ?? afterMs, afterMs) }
}

const withImportedState = (stack: Stack, lineage: string): Stack => ({
  ...stack,
  metadata: { ...stack.metadata, annotations: { ...stack.metadata.annotations, [annotations.importedState]: lineage } },
})
