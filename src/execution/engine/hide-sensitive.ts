import { isJsonObject, type Json } from '../../kubernetes/object/index.ts'

/** What is shown instead of a sensitive value, as Terraform does. */
export const sensitiveText = '(sensitive value)'

/**
 * `value` with its sensitive leaves hidden. `marks` has the structure of the value, with `true` for what is sensitive, as Terraform's
 * `before_sensitive`. A value whose marks have another structure is hidden as a whole.
 */
export function hideSensitive(value: Json, marks: unknown): Json {
  if (!containsTrue(marks)) return value
  if (Array.isArray(value) && Array.isArray(marks)) return value.map((each, index) => hideSensitive(each, marks[index]))
  if (!isJsonObject(value) || !isJsonObject(marks)) return sensitiveText
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, hideSensitive(each as Json, marks[key])]))
}

/** Terraform marks a whole value with `true`, and parts of a value with a nested structure that contains `true`. */
export function containsTrue(marks: unknown): boolean {
  if (marks === true) return true
  return typeof marks === 'object' && marks !== null && Object.values(marks).some(containsTrue)
}
