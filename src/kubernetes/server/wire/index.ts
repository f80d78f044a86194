/**
 * @module wire: the representation of stored objects in responses. Start reading at `representation.ts`, then `render.ts`.
 * In: entries, events, an Accept header. Out: JSON or YAML text: objects, lists, Tables, partial metadata, watch events.
 */
export {
  eventLine,
  finish,
  type ListMeta,
  listFrame,
  listItem,
  renderBookmark,
  renderEntry,
  renderEvent,
  renderInitial,
  type SentType,
  wireText,
} from './render.ts'
export type { HeaderValue, Reply } from './reply.ts'
export { acceptRanges, negotiate, notAcceptable, type Representation, syntaxOf } from './representation.ts'
export { type Sent, send, sendDocument, sendError, sendLarge, takesGzip } from './send.ts'
