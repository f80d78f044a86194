import type { Json } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'
import type { StackOutputsData } from '../../../stores/state/index.ts'

/** The outputs of a Stack, as its engine returned them. */
export type Outputs = Record<string, { value: Json; sensitive: boolean }>

/** A Secret holds at most 1 MiB, including its metadata. */
const maxOutputBytes = 900_000

/** Outputs that cannot be stored. */
export class OutputsError extends Error {
  override readonly name = 'OutputsError'
  readonly reason = 'InvalidOutputs'
  readonly retryable = false
}

/** sha256 over all outputs, including sensitive ones, whatever the order of their keys. */
export function outputsDigest(outputs: Outputs): string {
  const entries = Object.keys(outputs)
    .sort()
    .map(name => [name, outputs[name]!.value])
  return `sha256:${sha256(canonicalJson(entries))}`
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const object = value as Record<string, unknown>
  return `{${Object.keys(object)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonicalJson(object[key])}`)
    .join(',')}}`
}

/**
 * Marks outputs as sensitive if `mask` finds a secret in them: an engine may pass on an input without knowing that it is a secret
 * (invariant 9). `marked` names the outputs that the engine had not marked.
 */
export function markSecretOutputs(outputs: Outputs, mask: (text: string) => string): { outputs: Outputs; marked: string[] } {
  const marked = Object.keys(outputs).filter(name => {
    const { value, sensitive } = outputs[name]!
    const text = JSON.stringify(value)
    return !sensitive && mask(text) !== text
  })
  const sensitive = marked.map(name => [name, { value: outputs[name]!.value, sensitive: true }])
  return { outputs: { ...outputs, ...Object.fromEntries(sensitive) }, marked: marked.sort() }
}

/** The outputs that are not sensitive. */
export function publicOutputs(outputs: Outputs): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(outputs)
      .filter(([, { sensitive }]) => !sensitive)
      .map(([name, { value }]) => [name, value]),
  )
}

/**
 * What the stores keep in the Secret of the Stack's outputs.
 * @throws {OutputsError} for names that a Secret cannot have, and for more than 900,000 bytes.
 */
export function outputsData(outputs: Outputs, pulumiStack?: string): StackOutputsData {
  const data: Record<string, string> = {}
  let bytes = 0
  for (const [name, { value }] of Object.entries(outputs)) {
    if (!/^[-._a-zA-Z0-9]{1,253}$/.test(name)) {
      throw new OutputsError(`output name ${JSON.stringify(name)} must be 1 to 253 letters, digits, "-", "_" or "."`)
    }
    data[name] = Buffer.from(JSON.stringify(value)).toString('base64')
    bytes += name.length + data[name].length
  }
  if (bytes > maxOutputBytes) {
    throw new OutputsError(
      `outputs have ${bytes} bytes in base64, at most ${maxOutputBytes} are allowed; store large values elsewhere and output their location`,
    )
  }
  const sensitive = Object.keys(outputs).filter(key => outputs[key]!.sensitive)
  return { data, sensitive, ...(pulumiStack !== undefined && { pulumiStack }) }
}
