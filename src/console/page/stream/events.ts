/** A server-sent event. An empty one (`data` undefined) is a comment, by which a server shows that the connection lives. */
export type StreamEvent = { readonly id: number; readonly data: string | undefined }

/** Reads server-sent events as they arrive. Returns what is left after the last complete event. */
export function takeEvents(text: string, take: (event: StreamEvent) => void): string {
  let start = 0
  for (let end = text.indexOf('\n\n', start); end >= 0; end = text.indexOf('\n\n', start)) {
    take(readEvent(text.slice(start, end)))
    start = end + 2
  }
  return text.slice(start)
}

function readEvent(text: string): StreamEvent {
  let id = 0
  const data: string[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = Number(line.slice(4))
    else if (line.startsWith('data: ')) data.push(line.slice(6))
  }
  return { id, data: data.length > 0 ? data.join('\n') : undefined }
}
