/** An external system and an API server in memory, for transcripts: executes the steps of the decider as the shell does, one line for each. */
import type { TranscriptPlayer } from '../../../test/support/transcripts.ts'
import { findCondition, type JsonObject, parseDuration, setCondition } from '../../kubernetes/object/index.ts'
import { annotations, externalNameOf } from './annotations.ts'
import { decideStep, managedFinalizer } from './decide-step.ts'
import type { Change, ManagedObject, Observation } from './managed-object.ts'
import type { End, Facts, Failure, Settings, Step } from './step.ts'

const startMs = Date.parse('2026-11-27T06:00:00Z')

/**
 * Commands: `setting NAME=VALUE`, `policies O C U D L | * | none`, `annotate NAME=VALUE` and `annotate NAME-`, `external exists|missing|differs|not-ready`,
 * `late FIELD=VALUE`, `fail STEP conflict|failed|unknown`, `kill-after STEP` (the process ends after it), `delete`, `finalizer NAME` and `finalizer NAME-`,
 * `fence N`, `advance DURATION`, `reconcile`.
 */
export class SequencePlayer implements TranscriptPlayer {
  readonly #lines: string[] = []
  #nowMs = startMs
  #settings: Settings = {
    hasDeterministicNames: false,
    assignsExternalNames: false,
    hasReferences: false,
    pauses: false,
    dispatched: new Set(),
    pollIntervalMs: 60_000,
    minimumPollIntervalMs: 1_000,
    creationGraceMs: 30_000,
    deletionCheckMs: 2_000,
  }
  #object: ManagedObject = {
    apiVersion: 'harbor.example/v1',
    kind: 'Boat',
    metadata: {
      name: 'a',
      namespace: 'default',
      uid: 'uid',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-11-27T06:00:00Z',
    },
    spec: { forProvider: {} },
  }
  #external: Observation = { exists: false }
  #created: Change | undefined
  #late: JsonObject | undefined
  #failing = new Map<string, Failure['kind']>()
  #killAfter: string | undefined
  #fence: number | undefined

  play(command: string, words: string[], options: Record<string, string>): void {
    const { metadata } = this.#object
    const [word = '', second = ''] = words
    switch (command) {
      case 'setting':
        for (const [name, value] of Object.entries(options)) this.#settings = { ...this.#settings, [name]: JSON.parse(value) }
        return
      case 'policies': {
        const names: Record<string, string> = { O: 'Observe', C: 'Create', U: 'Update', D: 'Delete', L: 'LateInitialize' }
        const managementPolicies = word === 'none' ? [] : words.map(initial => names[initial] ?? initial)
        this.#object = { ...this.#object, spec: { ...this.#object.spec, managementPolicies } }
        return
      }
      case 'annotate':
        this.#annotate(options)
        for (const name of words) this.#annotate({ [name.slice(0, -1)]: undefined })
        return
      case 'external':
        this.#external = externals[word] as Observation
        return
      case 'created':
        this.#created = { externalName: options.name, ...(options.password && { connectionDetails: { password: options.password } }) }
        return
      case 'late':
        this.#late = options
        return
      case 'fail':
        this.#failing.set(word, second as Failure['kind'])
        return
      case 'kill-after':
        this.#killAfter = word
        return
      case 'delete':
        this.#object = { ...this.#object, metadata: { ...metadata, deletionTimestamp: new Date(this.#nowMs).toISOString() } }
        return
      case 'finalizer':
        this.#finalizers(word)
        return
      case 'fence':
        this.#fence = Number(word)
        return
      case 'advance':
        this.#nowMs += parseDuration(word)
        return
      case 'reconcile':
        this.#reconcile()
        return
      default:
        throw new Error(`unknown command ${command}`)
    }
  }

  /** What the next observations find. */
  protected observe(external: Observation): void {
    this.#external = external
  }

  protected get object(): ManagedObject {
    return this.#object
  }

  /** Executes a step of an operation that is dispatched; undefined for other steps. */
  protected dispatch(_step: Exclude<Step, End>): Partial<Facts> | undefined {
    return undefined
  }

  protected get nowMs(): number {
    return this.#nowMs
  }

  protected set(settings: Partial<Settings>): void {
    this.#settings = { ...this.#settings, ...settings }
  }

  takeLines(): string[] {
    return this.#lines.splice(0)
  }

  #reconcile(): void {
    let facts: Facts = { object: this.#object, done: new Set(), fence: this.#fence }
    for (let count = 0; count < 30; count++) {
      const step = decideStep(facts, this.#settings, this.#nowMs, 0)
      if (step.kind === 'end') {
        this.#end(step, facts)
        return
      }
      if (facts.done.has(step.kind)) throw new Error(`step ${step.kind} was decided twice`)
      const failure = this.#failing.get(step.kind)
      this.#failing.delete(step.kind)
      this.#lines.push(`${describe(step)}${failure ? ` -> ${failure}` : ''}`)
      const done = new Set(facts.done).add(step.kind)
      if (failure) facts = { ...facts, done, failure: facts.failure ?? { step: step.kind, message: 'no answer', kind: failure } }
      else facts = { ...facts, ...this.#execute(step), object: this.#object, done }
      if (this.#killAfter === step.kind) {
        this.#killAfter = undefined
        this.#lines.push('killed')
        return
      }
    }
    throw new Error('the sequence does not end')
  }

  #execute(step: Exclude<Step, End>): Partial<Facts> {
    const dispatched = this.dispatch(step)
    if (dispatched) return dispatched
    switch (step.kind) {
      case 'set-external-name':
        this.#annotate({ [annotations.externalName]: step.externalName })
        return {}
      case 'observe':
        return { observation: this.#external, lateInitialized: this.#external.exists ? this.#late : undefined }
      case 'mark-pending':
      case 'mark-result':
        this.#annotate(step.annotations)
        return {}
      case 'create':
        this.#external = { ...this.#external, exists: true }
        return { change: this.#created }
      case 'update':
        this.#external = externals.exists as Observation
        return {}
      case 'delete':
        this.#external = { exists: false }
        return {}
      case 'late-initialize':
        this.#late = undefined
        return {}
      case 'add-finalizer':
        this.#finalizers(managedFinalizer)
        return {}
      case 'remove-finalizer':
        this.#finalizers(`${managedFinalizer}-`)
        return {}
      default:
        return {}
    }
  }

  #annotate(values: Readonly<Record<string, string | undefined>>): void {
    const { metadata } = this.#object
    const all = Object.entries({ ...metadata.annotations, ...values }).filter((entry): entry is [string, string] => entry[1] !== undefined)
    this.#object = { ...this.#object, metadata: { ...metadata, annotations: Object.fromEntries(all) } }
  }

  #finalizers(word: string): void {
    const { metadata } = this.#object
    const name = word.replace(/-$/, '')
    const others = (metadata.finalizers ?? []).filter(other => other !== name)
    this.#object = { ...this.#object, metadata: { ...metadata, finalizers: word.endsWith('-') ? others : [...others, name] } }
  }

  #end({ synced, ready, requeue, event, isGone }: End, { operation }: Facts): void {
    let conditions = this.#object.status?.conditions
    for (const [type, part] of [
      ['Ready', ready],
      ['Synced', synced],
    ] as const) {
      if (part) conditions = setCondition(conditions, { type, ...part }, this.#nowMs)
    }
    const run = operation?.run ?? this.#object.status?.run
    const token = this.#object.metadata.annotations?.[annotations.reconcileRequestedAt]
    this.#object = { ...this.#object, status: { conditions, ...(run && { run }), ...(token && { lastHandledReconcileAt: token }) } }
    for (const type of ['Synced', 'Ready']) {
      const condition = findCondition(conditions, type)
      const isNew = type === 'Synced' ? synced : ready
      if (condition && isNew)
        this.#lines.push(`${type}=${condition.status} ${condition.reason}${condition.message && `: ${condition.message}`}`)
    }
    if (event) this.#lines.push(`event ${event.reason}`)
    this.#lines.push(isGone ? 'gone' : `requeue ${typeof requeue === 'string' ? requeue : `after ${requeue.afterMs / 1_000} s`}`)
    if (externalNameOf(this.#object) === undefined && !isGone) this.#lines.push('no external name')
  }
}

const externals: Record<string, Observation> = {
  exists: { exists: true },
  missing: { exists: false },
  differs: { exists: true, isUpToDate: false, diff: 'size: 1 -> 2' },
  'not-ready': { exists: true, ready: { reason: 'Creating', message: 'it boots' } },
  published: { exists: true, connectionDetails: { host: 'db' } },
}

function describe(step: Exclude<Step, End>): string {
  if (step.kind === 'set-external-name') return `set-external-name ${step.externalName}`
  if (step.kind === 'late-initialize') return `late-initialize ${JSON.stringify(step.fields)}`
  if (step.kind !== 'mark-pending' && step.kind !== 'mark-result') return step.kind
  const marks = Object.entries(step.annotations).map(([name, value]) => `${name.slice(name.indexOf('/') + 1)}=${value}`)
  return `${step.kind} ${marks.join(' ')}`
}
