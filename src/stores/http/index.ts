/**
 * @module store-http: HTTP as the stores of states and logs speak it. Start reading at `http-body.ts`.
 * In: a request's body, within bounds of size and time, and whole answers or refusals (`{error:{code,message}}`). Out: requests of
 * workers and tools over kept connections (`RequestSender`).
 * Not done here: paths, who may what, and anything that knows of states or logs. The API server and its clients have their own.
 */
export { BodyBudget, HttpError, readBody, send, sendError, sendJson } from './http-body.ts'
export { type HttpResponse, HttpSender } from './http-sender.ts'
