/**
 * @module stores/http: what the handlers and clients of the state and log stores have in common. Start reading at `http-body.ts`.
 * Input: request bodies, limited in size and time, and the requests of each client, limited in number. Output: complete responses and errors (`{error:{code,message}}`), and on the client's
 * side requests over persistent connections (`HttpSender`).
 * Out of scope: paths, authorization, and everything about states and logs. The API server and its clients have their own HTTP code.
 */
export { BodyBudget, type BodyReservation, HttpError, type HttpUser, readBody, send, sendError, sendJson } from './http-body.ts'
export { type HttpResponse, HttpSender } from './http-sender.ts'
export { clientOf, RequestLimiter } from './request-limiter.ts'
