import { isJsonObject, type Json } from '../../kubernetes/object/index.ts'

/** Outputs are stored in a Secret, which holds at most 1 MiB. */
export const maxOutputsBytes = 900_000

const namePattern = /^[A-Za-z0-9_][-A-Za-z0-9_.]{0,252}$/

export const isOutputName = (name: string): boolean => namePattern.test(name)

/** What is wrong with another name, for messages. */
export const describeOutputName = (name: string): string =>
  `${JSON.stringify(name.slice(0, 80))}; a name has at most 253 letters, digits, "-", "_" and "."`

/** Whether a program marked an output: `{"value": …, "sensitive": …}` and nothing else. */
export function isMarkedOutput(output: unknown): output is { readonly value: Json; readonly sensitive: unknown } {
  return isJsonObject(output) && Object.hasOwn(output, 'value') && Object.hasOwn(output, 'sensitive') && Object.keys(output).length === 2
}
