import { equalJson, isJsonObject } from '../object/index.ts'

/** The JSON merge patch that turns `before` into `after`, or undefined if they are equal. Undefined members count as absent. */
export function mergeDiff(before: unknown, after: unknown): unknown {
  if (!isJsonObject(before) || !isJsonObject(after)) return equalJson(before, after) ? undefined : after
  const patch: { [name: string]: unknown } = {}
  let isEmpty = true
  for (const name of Object.keys(before)) {
    if (before[name] === undefined || before[name] === null || (after[name] !== undefined && after[name] !== null)) continue
    patch[name] = null
    isEmpty = false
  }
  for (const [name, value] of Object.entries(after)) {
    if (value === undefined || value === null) continue
    // A member that was not an object is replaced as a whole: otherwise nulls below it would have to be removed.
    const change = before[name] === undefined || before[name] === null ? value : mergeDiff(before[name], value)
    if (change === undefined) continue
    patch[name] = change
    isEmpty = false
  }
  return isEmpty ? undefined : patch
}
