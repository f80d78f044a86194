/** A managed resource whose Stack is given by commands, for transcripts. */
import type { Run, Stack } from '../../../api/index.ts'
import { SequencePlayer } from '../sequence.testing.ts'
import { knownProblem, observeStack } from './observe-stack.ts'

type Ready = { status: 'True' | 'False'; reason: string; message: string }

const companions: Record<string, string> = { reconciling: 'Reconciling', stalled: 'Stalled', approval: 'AwaitingApproval' }

/**
 * Besides the commands of {@link SequencePlayer}: `stack ready|reconciling|stalled|approval|new|missing [deleting] reason=… message=… failures=N`, where `new` was written and not
 * reconciled yet, with _ for spaces; `applied`: its first Apply has succeeded; `wanted differs`: the spec of the Stack; `run PHASE done=N total=N current=…`.
 */
export class StackPlayer extends SequencePlayer {
  #stack: Stack | undefined
  #run: Run | undefined
  #isApplied = false
  #isUpToDate = true

  override play(command: string, words: string[], options: Record<string, string>): void {
    switch (command) {
      case 'stack':
        this.#stack = this.#stackOf(words, options)
        break
      case 'applied':
        this.#isApplied = true
        break
      case 'wanted':
        this.#isUpToDate = words[0] !== 'differs'
        break
      case 'run':
        this.#run = runOf(words[0] ?? '', options)
        break
      default:
        super.play(command, words, options)
        return
    }
    const observed = this.#stack && observeStack(this.#stack, this.#run, knownProblem(this.object))
    this.observe(observed ? { exists: true, isUpToDate: this.#isUpToDate, ...observed } : { exists: false })
  }

  #stackOf([state = '', isDeleting]: string[], { reason = '', message = '', failures }: Record<string, string>): Stack | undefined {
    if (state === 'missing') return undefined
    const ready: Ready = { status: state === 'ready' ? 'True' : 'False', reason, message: spaced(message) }
    const companion = companions[state]
    const conditions = [{ type: 'Ready', ...ready }, ...(companion ? [{ type: companion, ...ready, status: 'True' }] : [])]
    const metadata = { name: 'boat-a', generation: 2, ...(isDeleting === 'deleting' && { deletionTimestamp: '2026-11-27T06:00:00Z' }) }
    const status = {
      observedGeneration: state === 'new' ? 1 : 2,
      conditions,
      ...(this.#isApplied && { applied: {} }),
      ...(failures && { failures: Number(failures) }),
    }
    return { metadata, status } as unknown as Stack
  }
}

const spaced = (text: string): string => text.replaceAll('_', ' ')

function runOf(phase: string, { done, total, current }: Record<string, string>): Run {
  const progress = done === undefined ? undefined : { done: Number(done), total: Number(total), current: current && spaced(current) }
  return { metadata: { name: 'boat-a-1' }, spec: { type: 'Apply', workerName: 'w' }, status: { phase, progress } } as unknown as Run
}
