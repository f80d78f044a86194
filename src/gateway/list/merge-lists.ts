/** What a list begins with: everything before its items. */
export type ListHead = { readonly resourceVersion: string; readonly continue: string; readonly text: string }

const starts = ['"items":[', '"rows":['].map(text => Buffer.from(text))
const end = Buffer.from(']}')
/** The longest head: kind, metadata with a continue token, and the columns of a Table. */
const maxHeadBytes = 64 * 1024

/**
 * Joins the lists of several partitions at one resource version, without decoding their objects: the head of the first one, the items of all, and one end.
 * Each body begins as the embedded server writes it, with `items` or `rows` last.
 * @throws {Error} if a body is not such a list, or ends early. What was returned before must then not look like a whole list: the caller breaks the connection.
 */
export async function* mergeLists(
  bodies: readonly AsyncIterable<Uint8Array>[],
  headOf = (head: string): string => head,
): AsyncGenerator<Buffer> {
  let hasItems = false
  for (const [index, body] of bodies.entries()) {
    let isFirst = true
    for await (const chunk of itemsOf(body)) {
      if (chunk.head !== undefined) {
        if (index === 0) yield Buffer.from(headOf(chunk.head))
        continue
      }
      if (isFirst && hasItems) yield Buffer.from(',')
      isFirst = false
      hasItems = true
      yield chunk.items
    }
  }
  yield end
}

type Part = { readonly head: string } | { readonly head?: undefined; readonly items: Buffer }

/** The head of a list, then its items in chunks, without the end. */
async function* itemsOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  let rest: Buffer = Buffer.alloc(0)
  let isInItems = false
  for await (const chunk of body) {
    if (isInItems && rest.length > 0 && chunk.length > end.length) {
      // Not joined, which would copy the whole list.
      yield { items: rest }
      rest = Buffer.alloc(0)
    }
    rest = rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.concat([rest, chunk])
    if (!isInItems) {
      const at = startOf(rest)
      if (at < 0) {
        if (rest.length > maxHeadBytes) throw notAList(rest)
        continue
      }
      isInItems = true
      yield { head: rest.toString('utf8', 0, at) }
      rest = rest.subarray(at)
    }
    // The last bytes may be the end.
    if (rest.length <= end.length) continue
    yield { items: rest.subarray(0, rest.length - end.length) }
    rest = Buffer.from(rest.subarray(rest.length - end.length))
  }
  if (!isInItems) throw notAList(rest)
  if (!rest.equals(end))
    throw new Error(`a list of a partition ends with ${JSON.stringify(rest.toString('latin1'))}, not with "]}": it is incomplete`)
}

/** Of whichever comes first: an object may contain the other one. */
function startOf(bytes: Buffer): number {
  const found = starts.map(start => ({ at: bytes.indexOf(start), length: start.length })).filter(({ at }) => at >= 0)
  const [first] = found.sort((a, b) => a.at - b.at)
  return first ? first.at + first.length : -1
}

function notAList(bytes: Buffer): Error {
  return new Error(`a partition answered a list with something else: ${JSON.stringify(bytes.toString('latin1', 0, 80))}`)
}

/** The head with other metadata: `change` gets the metadata, as an object. */
export function withMetadata(head: string, change: (metadata: Record<string, unknown>) => Record<string, unknown>): string {
  const start = head.lastIndexOf('[')
  const name = /"(items|rows)":\[$/.exec(head)?.[1]
  if (name === undefined) throw new Error(`the head of a list ends with ${JSON.stringify(head.slice(start - 20))}`)
  const list = JSON.parse(`${head}]}`) as { metadata?: Record<string, unknown> }
  list.metadata = change(list.metadata ?? {})
  const text = JSON.stringify(list)
  return text.slice(0, text.length - end.length)
}
