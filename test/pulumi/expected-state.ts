import type { Deployment, PendingOperation, Resource } from '../../src/stores/pulumi/index.ts'
import type { RecordedExchange, Recording } from './recording.ts'
import { ownStack } from './replay-run.ts'
import { bodyOf } from './request-text.ts'

/** Sorted; `<urn> <id>` of each resource, and `<type> <urn>` of each operation that began and did not end. */
export type StateSummary = { readonly resources: readonly string[]; readonly pending: readonly string[] }

export const exchangesOf = ({ lines }: Recording): RecordedExchange[] => lines.filter(line => line.kind === 'exchange')

/** @param deployment undefined: there is no state. */
export function summarize(deployment: Deployment | null | undefined): StateSummary {
  const { resources, pending_operations: pending } = deployment ?? {}
  return {
    resources: (resources ?? []).map(describe).sort(),
    pending: (pending ?? []).map(({ type, resource: { urn } }) => `${type} ${urn}`).sort(),
  }
}

const describe = ({ urn, id, delete: isDelete }: Resource): string => `${urn} ${id ?? '-'}${isDelete ? ' (to be deleted)' : ''}`

/**
 * What the CLI knows to be stored after the first `until` requests, from what the recording has on the wire and without the replay of the product: the
 * last state that the CLI has read, and the entries that were acknowledged since then.
 */
export function acknowledgedState(recording: Recording, until: number): StateSummary {
  const { organization, project, stack } = ownStack(recording)
  const own = `/api/stacks/${organization}/${project}/${stack}`
  const initial = recording.header.stacks[`${organization}/${project}/${stack}`]?.deployment
  let base: Deployment = initial === undefined ? {} : (JSON.parse(initial).deployment ?? {})
  let state = summarize(base)
  let entries: Entry[] = []
  for (const exchange of exchangesOf(recording).slice(0, until)) {
    const { path, status = 200, answer = '' } = exchange
    if (status !== 200) continue
    if (path === `${own}/export`) {
      base = JSON.parse(Buffer.from(answer, 'base64').toString()).deployment ?? {}
      entries = []
    } else if (path === `${own}/import`) state = summarize(JSON.parse(bodyOf(exchange)).deployment)
    else if (path.endsWith('/checkpoint')) state = summarize(JSON.parse(bodyOf(exchange)).deployment)
    else if (path.endsWith('/journalentries')) {
      entries = [...entries, ...(JSON.parse(bodyOf(exchange)) as { entries: Entry[] }).entries]
      state = apply(base, entries)
    }
  }
  return state
}

type Entry = {
  readonly kind: number
  readonly sequenceID: number
  readonly operationID: number
  readonly removeOld?: number | null
  readonly removeNew?: number | null
  readonly deleteOld?: number | null
  readonly state?: Resource
  readonly operation?: PendingOperation
}

const [begin, success, failure, refreshSuccess, outputs] = [0, 1, 2, 3, 4]

function apply(base: Deployment, entries: readonly Entry[]): StateSummary {
  const old: (Resource | undefined)[] = [...(base.resources ?? [])]
  const added = new Map<number, Resource>()
  const begun = new Map<number, PendingOperation | undefined>()
  for (const { kind, operationID, state, ...entry } of entries.toSorted((a, b) => a.sequenceID - b.sequenceID)) {
    if (kind === begin) begun.set(operationID, entry.operation)
    if (kind === success || kind === failure || kind === refreshSuccess) begun.delete(operationID)
    if (kind !== success && kind !== refreshSuccess && kind !== outputs) continue
    const isInPlace = kind !== success
    const { removeOld, removeNew, deleteOld } = entry
    if (typeof removeOld === 'number') old[removeOld] = isInPlace ? state : undefined
    if (typeof removeNew === 'number') {
      if (isInPlace && state) added.set(removeNew, state)
      else added.delete(removeNew)
    }
    if (typeof deleteOld === 'number') old[deleteOld] = { ...old[deleteOld]!, delete: true }
    if (!isInPlace && state) added.set(operationID, state)
  }
  const creating = (base.pending_operations ?? []).filter(({ type }) => type === 'creating')
  const pending = [...begun.values()].filter(each => each !== undefined)
  return summarize({
    resources: [...old.filter(each => each !== undefined), ...added.values()],
    pending_operations: [...pending, ...creating],
  })
}
