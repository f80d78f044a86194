import type { PulumiEvent, PulumiResourceStep } from '../../pulumi-backend/index.ts'
import type { Diagnostic } from '../diagnostics.ts'
import type { ResourceChange } from './plan-file.ts'
import { isCounted, nameOf, typeOf } from './urn.ts'

/** Of errors, and of warnings: warnings must not displace the error that explains a failure. */
const maxDiagnostics = 200
/** Characters of the resources that change, with what changes of them: about 50,000 resources. */
const maxCharacters = 16 * 1_048_576
/** Resources that are refreshed at the same time; more are not found to have changed. */
const maxRefreshing = 10_000
const unchanging: readonly string[] = ['same', 'read', 'read-discard', 'read-replacement']

export type Progress = { done: number; total: number; current?: string }

/** The label of its severity, which the CLI prints before each message. */
const withoutLabel = (message: string): string => message.trim().replace(/^error: (?=\S)/, '')

const followsFromOthers = (detail: string): boolean =>
  /^expected resource operations for .* but none were seen$|^an unhandled error occurred: waiting for RPCs: |^(preview|update) failed$/.test(
    detail,
  )

/** What the engine of one command of the CLI has reported. Bounded: a program can send any events (invariant 10). */
export class ObservedEvents {
  readonly #diagnostics: Diagnostic[] = []
  /** How many of a severity are kept. */
  readonly #counts = new Map<Diagnostic['severity'], number>()
  /** Operation to the number of resources; undefined before the end. */
  summary: Readonly<Record<string, number>> | undefined
  readonly #steps = new Map<string, Set<string>>()
  readonly #details = new Map<string, Pick<PulumiResourceStep, 'detailedDiff' | 'replaceKeys'>>()
  readonly #done = new Set<string>()
  /** Resources that are being read from their provider. */
  readonly #refreshing = new Set<string>()
  readonly #total: number
  #characters = 0
  #isTruncated = false
  #violatesPolicy = false

  /** @param total resources that are expected to change. */
  constructor(total = 0) {
    this.#total = total
  }

  /** @returns the progress, if the event changes it. */
  add(event: PulumiEvent): Progress | undefined {
    if (event.kind === 'summary') this.summary = event.changes
    else if (event.kind === 'error') this.#addDiagnostic({ severity: 'error', summary: event.message.trim() })
    else if (event.kind === 'diagnostic') {
      const { severity, message, urn, isEphemeral } = event
      if (severity !== 'error' || isEphemeral) return undefined
      this.#addDiagnostic({ severity: 'error', summary: urn ? `${typeOf(urn)} ${nameOf(urn)}` : 'pulumi', detail: withoutLabel(message) })
    } else if (event.kind === 'policy' && (event.enforcementLevel === 'mandatory' || event.enforcementLevel === 'advisory')) {
      const { policy, pack, message, urn, enforcementLevel } = event
      const severity = enforcementLevel === 'mandatory' ? 'error' : 'warning'
      const by = urn ? ` by ${typeOf(urn)} ${nameOf(urn)}` : ''
      this.#addDiagnostic({
        severity,
        summary: `policy ${policy} of pack ${pack} is violated${by}`,
        detail: message.trim().replace(/\s*\n\s*/g, ' '),
      })
      if (severity === 'error') this.#violatesPolicy = true
    } else if (event.kind === 'resourceStarted' || event.kind === 'resourceDone') return this.#addStep(event.step, event.kind)
    return undefined
  }

  /** A mandatory policy is violated: the same inputs would be rejected again. */
  get violatesPolicy(): boolean {
    return this.#violatesPolicy
  }

  /** True if there were more changes than are kept. */
  get isTruncated(): boolean {
    return this.#isTruncated
  }

  /**
   * The errors, without those that follow from others: what is not done after an error is missing from what the plan expects (`--plan`), and the
   * program fails because its resource did.
   */
  get diagnostics(): readonly Diagnostic[] {
    const causes = this.#diagnostics.filter(({ detail = '' }) => !followsFromOthers(detail))
    return causes.some(({ severity }) => severity === 'error') ? causes : this.#diagnostics
  }

  /** The resources that change, of a preview. */
  changes(): ResourceChange[] {
    return [...this.#steps]
      .map(([urn, steps]) => ({ urn, actions: [...steps].filter(step => !unchanging.includes(step)), detail: this.#details.get(urn) }))
      .filter(({ actions }) => actions.length > 0)
      .sort((a, b) => (a.urn < b.urn ? -1 : 1))
      .map(({ urn, actions, detail }) => ({
        ...{ urn, type: typeOf(urn), actions },
        document: { properties: { ...detail?.detailedDiff }, replaces: [...(detail?.replaceKeys ?? [])] },
      }))
  }

  #addStep(step: PulumiResourceStep, kind: 'resourceStarted' | 'resourceDone'): Progress | undefined {
    const refreshed = this.#addRefresh(step, kind)
    if (refreshed) return refreshed
    const { urn, op } = step
    if (unchanging.includes(op) || !this.#keepStep(step)) return undefined
    if (!isCounted(urn)) return undefined
    if (kind === 'resourceDone') this.#done.add(urn)
    const done = this.#done.size
    return { done, total: Math.max(this.#total, done), current: `${op} ${typeOf(urn)} ${nameOf(urn)}` }
  }

  /** False if there is no room for it. */
  #keepStep({ urn, op, detailedDiff, replaceKeys }: PulumiResourceStep): boolean {
    this.#characters += urn.length + op.length + JSON.stringify([detailedDiff, replaceKeys]).length
    if (this.#characters > maxCharacters) {
      this.#isTruncated = true
      return false
    }
    const steps = this.#steps.get(urn) ?? new Set()
    steps.add(op)
    this.#steps.set(urn, steps)
    this.#details.set(urn, { detailedDiff, replaceKeys })
    return true
  }

  /**
   * Every resource that is refreshed has the step `refresh`, whether it has changed or not. It ends as `refresh` before an update, and in a refresh on its own as
   * what its inputs show: `same`, although its outputs may have changed, `update` or `delete`.
   */
  #addRefresh(step: PulumiResourceStep, kind: 'resourceStarted' | 'resourceDone'): Progress | undefined {
    const { urn, op, isStateChange } = step
    const current = {
      done: this.#done.size,
      total: Math.max(this.#total, this.#done.size),
      current: `refresh ${typeOf(urn)} ${nameOf(urn)}`,
    }
    if (kind === 'resourceStarted') {
      if (op !== 'refresh') return undefined
      if (this.#refreshing.size < maxRefreshing) this.#refreshing.add(urn)
      return current
    }
    const isRefreshed = this.#refreshing.delete(urn) || op === 'refresh'
    if (!isRefreshed || (op !== 'refresh' && op !== 'same')) return undefined
    if (isStateChange) this.#keepStep({ ...step, op: 'refresh' })
    return current
  }

  #addDiagnostic(diagnostic: Diagnostic): void {
    const { severity } = diagnostic
    const count = this.#counts.get(severity) ?? 0
    if (count >= maxDiagnostics) return
    this.#counts.set(severity, count + 1)
    this.#diagnostics.push(diagnostic)
  }
}
