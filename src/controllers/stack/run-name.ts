import { maxStackNameChars } from './constants.ts'

/**
 * The name of Run number `number` of a Stack: `<stack, at most 40 characters>-<first 5 of its uid>-<number>`.
 * It depends on the Stack and the counter only, so that creating a Run twice is a conflict and not a second Run (invariant 1).
 */
export function runName(stack: { metadata: { name: string; uid: string } }, number: number): string {
  const { name, uid } = stack.metadata
  return `${truncateName(name, maxStackNameChars)}-${uid.slice(0, 5).toLowerCase()}-${number}`
}

/** The value of the label `oarlock.dev/stack`: the Stack's name, truncated to the length of a label value. For users only; the code matches by uid. */
export function stackLabel(name: string): string {
  return truncateName(name, 63)
}

// A truncated name must not end in '-' or '.': 'a.-3f2a1-1' is not a DNS name.
function truncateName(name: string, maxLength: number): string {
  return name.slice(0, maxLength).replace(/[-.]+$/, '')
}
