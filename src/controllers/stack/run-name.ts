import { maxStackPart } from './limits.ts'

/**
 * The name of Run number `number` of a Stack: `<stack, at most 40 characters>-<first 5 of its uid>-<number>`.
 * A function of the Stack and its counter alone, so that creating a Run twice is a conflict and not a second Run (invariant 1).
 */
export function runName(stack: { metadata: { name: string; uid: string } }, number: number): string {
  const { name, uid } = stack.metadata
  return `${cutName(name, maxStackPart)}-${uid.slice(0, 5).toLowerCase()}-${number}`
}

/** The value of the label `oarlock.dev/stack`: the Stack's name, cut to what a label may hold. Only for people; code goes by uid. */
export function stackLabel(name: string): string {
  return cutName(name, 63)
}

// A cut may not leave a '-' or '.' at the end: 'a.-3f2a1-1' is no DNS name.
function cutName(name: string, maxLength: number): string {
  return name.slice(0, maxLength).replace(/[-.]+$/, '')
}
