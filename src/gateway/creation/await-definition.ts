import { setTimeout as sleep } from 'node:timers/promises'
import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { type Condition, isConditionTrue, type KubeObject } from '../../kubernetes/object/index.ts'
import { WholeBody } from '../partition/index.ts'

/** Partitions follow home by watches, so this is much longer than they need. */
const patienceMs = 5_000
const readEveryMs = 50

export type DefinitionOptions = {
  /** Of the definition as home has it, what is wrong with the other partitions; undefined: all have this generation. */
  missingIn(definition: KubeObject): string | undefined
  /** Reads the definition at home. @throws if it cannot be read. */
  read(name: string): Promise<TransportStreamResponse>
  readonly signal: AbortSignal
}

/**
 * Waits, after the change of a CustomResourceDefinition that is Established, until all partitions have it: an object with a new field that is written next would
 * lose the field in a partition that has the previous schema. One that does not have it within 5 s is named in a `Warning` of the response.
 */
export async function awaitDefinition(answer: TransportStreamResponse, options: DefinitionOptions): Promise<TransportStreamResponse> {
  let definition = definitionIn(answer)
  const deadlineMs = performance.now() + patienceMs
  for (;;) {
    if (!definition || !isConditionTrue(definition.status?.conditions, 'Established')) return answer
    const missing = options.missingIn(definition)
    if (missing === undefined) return answer
    if (performance.now() > deadlineMs || options.signal.aborted) return withWarning(answer, missing)
    await sleep(readEveryMs)
    const read: TransportStreamResponse | undefined = await options.read(definition.metadata.name).catch(() => undefined)
    if (!read) return withWarning(answer, missing)
    definition = definitionIn(read)
  }
}

type Definition = KubeObject<{ kind?: string; status?: { conditions?: readonly Condition[] } }>

/** Undefined of an error, and of a Table or another form in which a client has asked for it. */
function definitionIn({ status, body }: TransportStreamResponse): Definition | undefined {
  if (status !== 200 || !(body instanceof WholeBody)) return undefined
  try {
    const object = JSON.parse(body.text) as Definition
    return object.kind === 'CustomResourceDefinition' ? object : undefined
  } catch {
    return undefined
  }
}

function withWarning(answer: TransportStreamResponse, missing: string): TransportStreamResponse {
  const warning = `299 - "the change of this definition is ${missing}: until then, objects there have the previous schema"`
  const others = answer.headers.warning
  return { ...answer, headers: { ...answer.headers, warning: others === undefined ? warning : [others, warning].flat() } }
}
