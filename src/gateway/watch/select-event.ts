import type { SelectedValues } from '../../kubernetes/util/index.ts'
import type { SourceEvent } from './merge-events.ts'
import type { WatchSelection } from './watch-selection.ts'

/** An event of a shared watch. */
export type SharedEvent = Required<Pick<SourceEvent, 'revision' | 'line' | 'selected'>> & {
  readonly source: string
  readonly leaving: Uint8Array | undefined
  /** The line for a selection that the object enters; made when it is first needed. */
  added?: Uint8Array | undefined
}

const modifiedHead = Buffer.from('{"type":"MODIFIED",')
const addedHead = Buffer.from('{"type":"ADDED",')

/**
 * The line of an event for a selection, or undefined if it does not concern it: an object that enters it is ADDED, one that leaves it is DELETED, as in
 * every Kubernetes API server.
 */
export function selectEvent(event: SharedEvent, selection: WatchSelection): Uint8Array | undefined {
  if (selection.isWhole) return event.line
  const { selected } = event
  const { after } = selected
  const before = beforeOf(selected)
  const wasIn = before !== undefined && selection.matches(selected, before)
  if (after === undefined) return wasIn ? event.line : undefined
  const isIn = before === after ? wasIn : selection.matches(selected, after)
  if (isIn && (wasIn || before === undefined)) return event.line
  if (isIn) {
    event.added ??= asAdded(event.line)
    return event.added
  }
  if (!wasIn) return undefined
  if (event.leaving) return event.leaving
  throw new Error(`bug: the partition ${event.source} has not sent how ${selected.namespace}/${selected.name} leaves a selection`)
}

export const beforeOf = ({ before, after }: SelectedValues) => (before === true ? after : before)

function asAdded(line: Uint8Array): Uint8Array {
  const bytes = Buffer.from(line.buffer, line.byteOffset, line.byteLength)
  if (bytes.subarray(0, modifiedHead.length).equals(modifiedHead)) return Buffer.concat([addedHead, bytes.subarray(modifiedHead.length)])
  throw new Error(`the line of an event begins with ${JSON.stringify(bytes.toString('latin1', 0, 40))}`)
}
