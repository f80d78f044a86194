import { type RunOptions, runOptionsProblem } from './run-options.ts'

export const requestTypes = ['plan', 'apply', 'refresh', 'plan-destroy'] as const
export type RequestType = (typeof requestTypes)[number]

/** What a value of the annotation `oarlock.dev/requested-run` asks for. */
export type ParsedRunRequest =
  | { readonly type: RequestType; readonly options?: RunOptions }
  /** It asks for no Run. */
  | { readonly problem: string }

/**
 * Reads a value of the annotation `oarlock.dev/requested-run`: `TYPE:ID` or `TYPE:ID OPTIONS`, where OPTIONS is a JSON object
 * ({@link RunOptions}). A value that does not begin with a word and a colon, such as a time, requests an apply. The ID makes it another value than the one before.
 */
export function parseRunRequest(value: string): ParsedRunRequest {
  const kind = /^[A-Za-z-]+(?=:)/.exec(value)?.[0]
  if (kind === undefined) return { type: 'apply' }
  const type = requestTypes.find(each => each === kind)
  if (type === undefined) return { problem: `its type is ${JSON.stringify(kind)}; allowed are ${requestTypes.join(', ')}` }
  const start = value.search(/\s/)
  if (start < 0) return { type }
  const options = parseJson(value.slice(start + 1))
  if (options === undefined) return { problem: 'the options after the first space are not valid JSON' }
  const problem = runOptionsProblem(options)
  if (problem !== undefined) return { problem }
  const used = usedOptions(options as RunOptions)
  if (used === undefined) return { type }
  if (type === 'plan-destroy') return { problem: 'a plan of destruction has no options' }
  if (type === 'refresh' && (used.replace || used.refresh === false))
    return { problem: 'a refresh replaces nothing and reads the resources: only targets are allowed' }
  return { type, options: used }
}

/** The value of the annotation that requests a Run; `id` differs from that of every earlier request. */
export function formatRunRequest(type: RequestType, id: string, options: RunOptions | undefined): string {
  const used = options && usedOptions(options)
  return `${type}:${id}${used ? ` ${JSON.stringify(used)}` : ''}`
}

/** Without those that have their default; undefined if none is left. */
function usedOptions({ targets, replace, refresh }: RunOptions): RunOptions | undefined {
  const used = { ...(targets && { targets }), ...(replace && { replace }), ...(refresh === false && { refresh }) }
  return Object.keys(used).length > 0 ? used : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
