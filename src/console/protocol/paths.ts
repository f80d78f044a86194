/**
 * Paths of the console, below the address of its listener. Every other path below {@link pagePath} is the page itself, which reads it.
 *
 * | request | body → response |
 * |---|---|
 * | `GET session` | → `Session`, or 401 with `SignInOptions` |
 * | `POST session` | `SignIn` → `Session`, or 401. With a session of the same user it signs in again, for what asks for a recent sign-in |
 * | `POST links`, with the token of the data directory | → `{ link }`, for one sign-in |
 * | `DELETE session` | → 204 |
 * | `GET oidc/sign-in`, `?again` to authenticate again | → the OIDC provider, and back to the page with `#token=` or `#problem=` |
 * | `GET stream?resume=ID&last=N` | → server-sent events, each a `StreamMessage` with its number as id |
 * | `PUT stream/ID/views` | `{ [id]: ViewQuery }`, all that are visible → 204, or 404 if the stream has ended |
 * | `POST active` | → 204; the user has clicked or typed: keeps the session from ending |
 * | `GET actions/stacks/NS/NAME`, `actions/runs/NS/NAME`, `actions/workers/NAME` | → `Action[]` |
 * | `POST actions` | `ActionRequest` → `ActionResult` |
 * | `POST bulk` | `BulkRequest` → `BulkResult` |
 * | `GET plans/NS/RUN` | → `StoredDiff` |
 * | `GET logs/NS/RUN?follow=1&timestamps=1&offset=N` | → text, as it arrives, from a byte of the stored log on. `Oarlock-Times: missing`: its lines have no times |
 * | `GET stacks/NS/NAME/resources`, `outputs`, `variables`, `versions`, `events`, `graph`, `yaml` | → a part of its page, as of `stack-details.ts` |
 * | `GET stacks/NS/NAME/outputs/OUTPUT` | → `{ value }` of a sensitive output |
 * | `GET stacks/NS/NAME/diff?from=N&to=N&values=1` | → `StateDiff` of two versions of the state |
 * | `POST stacks/NS/NAME/yaml` | `YamlRequest` → `YamlResult`: validated by the server, and stored with `apply` |
 *
 * With a session every request needs the header {@link csrfHeader} with `Session.csrfToken`: the cookie alone is sent to the other ports of the host too. Errors are `ErrorBody`.
 */
export const pagePath = '/console/'
export const apiPath = '/console/api/'
export const csrfHeader = 'x-oarlock-csrf'

export type SignIn = { readonly link: string } | { readonly token: string }

/** How a user can sign in. `signIn` of OIDC is a path that the browser opens. */
export type SignInOptions = {
  readonly methods: readonly ('link' | 'token')[]
  readonly oidc?: { readonly name: string; readonly signIn: string }
}

export type ErrorBody = { readonly code: number; readonly reason: string; readonly message: string }
