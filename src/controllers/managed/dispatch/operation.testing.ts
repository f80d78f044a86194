/** A managed resource whose operations are dispatched to a Stack and Runs in memory, for transcripts. */
import type { Run, Stack } from '../../../api/index.ts'
import { annotations } from '../annotations.ts'
import { SequencePlayer } from '../sequence.testing.ts'
import type { End, Facts, Step } from '../step.ts'
import { decideOperation } from './decide-operation.ts'
import type { Operation, OperationKind } from './operation.ts'
import { stackAnnotations } from './stack-marks.ts'

type RunFacts = {
  epoch: number
  type: 'Apply' | 'Plan'
  phase: string
  workerName?: string
  reason?: string
  message?: string
  plan?: object
  finishedAt?: string
}

/**
 * Besides the commands of {@link SequencePlayer}: `dispatch OPERATION…` declares them; `run queued|active|succeeded|failed|canceled|lost [begun] [recovered] message=…` lets a
 * Run of the Stack begin (queued, active) or end, with _ for spaces: `begun` has a plan, after `recovered` another Run follows; `plan` is a Plan that waits for approval; `stack deleted`.
 */
export class OperationPlayer extends SequencePlayer {
  readonly #runs: RunFacts[] = []
  #operation: Operation | undefined
  #generation = 0
  #observed = 0
  #ready: { status: string; reason: string; message: string } | undefined
  #isStalled = false
  #handled: string | undefined

  override play(command: string, words: string[], options: Record<string, string>): void {
    switch (command) {
      case 'dispatch':
        this.set({ dispatched: new Set(words as OperationKind[]), pauses: true })
        return
      case 'stack':
        this.#operation = undefined
        return
      case 'run':
        this.#run(words, (options.message ?? '').replaceAll('_', ' '), options.done)
        return
      default:
        super.play(command, words, options)
    }
  }

  protected override dispatch(step: Exclude<Step, End>): Partial<Facts> | undefined {
    switch (step.kind) {
      case 'read-operation':
        return { operation: this.#state(), ...(this.#isSucceeded() && { change: { externalName: 'i-1' } }) }
      case 'finish-operation':
        this.#handled = String(this.#operation?.number)
        return {}
      case 'pause':
        return {}
      case 'create':
      case 'update':
      case 'delete': {
        if (step.failures === undefined) return undefined
        const { metadata } = this.object
        this.#operation = {
          kind: step.kind,
          number: Math.max(0, ...this.#runs.map(({ epoch }) => epoch)) + 1,
          isRepeatable: step.kind !== 'create',
          mark: step.kind === 'create' ? metadata.annotations?.[annotations.createPending] : undefined,
          generation: metadata.generation ?? 0,
          failures: step.failures,
        }
        this.#generation++
        return { operation: this.#state() }
      }
      default:
        return undefined
    }
  }

  #run([phase = '', ...flags]: string[], message: string, done: string | undefined): void {
    this.#observed = this.#generation
    const isBeginning = phase === 'queued' || phase === 'active' || phase === 'plan'
    let run = this.#runs.at(-1)
    if (!run || run.finishedAt) {
      run = { epoch: (run?.epoch ?? 0) + 1, type: phase === 'plan' ? 'Plan' : 'Apply', phase: 'Queued' }
      this.#runs.push(run)
    }
    const name = `boat-a-${run.epoch}`
    Object.assign(run, {
      phase: phases[phase],
      message,
      ...(phase !== 'queued' && { workerName: 'w' }),
      ...(flags.includes('begun') && { plan: {} }),
      ...(!isBeginning && { finishedAt: new Date(this.nowMs).toISOString() }),
      ...(done && { progress: { done: Number(done), total: 12 } }),
    })
    const isFollowed = flags.includes('recovered')
    this.#isStalled = !isBeginning && !isFollowed && phase !== 'succeeded'
    const reason = isBeginning
      ? 'Progressing'
      : phase === 'succeeded'
        ? 'Applied'
        : isFollowed
          ? 'RunLost'
          : phase === 'canceled'
            ? 'RunCanceled'
            : 'ApplyFailed'
    const text = message ? `Run ${name} ${phase}: ${message}` : `Run ${name} is ${phase}`
    this.#ready = { status: phase === 'succeeded' ? 'True' : 'False', reason, message: text }
  }

  #isSucceeded(): boolean {
    const state = this.#state()
    return state?.outcome.kind === 'succeeded' && !state.isHandled
  }

  #state() {
    if (!this.#operation) return undefined
    const conditions = this.#ready ? [{ type: 'Ready', ...this.#ready }] : []
    if (this.#isStalled && this.#ready) conditions.push({ ...this.#ready, type: 'Stalled', status: 'True' })
    const stack = {
      metadata: { name: 'boat-a', generation: this.#generation, annotations: { [stackAnnotations.handledOperation]: this.#handled } },
      spec: { variables: { operation: this.#operation } },
      status: { observedGeneration: this.#observed, conditions, applied: { at: this.#runs.at(-1)?.finishedAt } },
    } as unknown as Stack
    const runs = this.#runs.map(
      ({ epoch, type, workerName, ...status }) =>
        ({ metadata: { name: `boat-a-${epoch}` }, spec: { epoch, type, workerName }, status }) as unknown as Run,
    )
    return decideOperation(stack, runs)
  }
}

const phases: Readonly<Record<string, string>> = {
  queued: 'Queued',
  active: 'Applying',
  plan: 'Planning',
  succeeded: 'Succeeded',
  failed: 'Failed',
  canceled: 'Canceled',
  lost: 'Lost',
}
