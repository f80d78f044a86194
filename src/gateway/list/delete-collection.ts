import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { badRequest, isJsonObject, type Status, StatusError } from '../../kubernetes/object/index.ts'
import { discardBody } from '../partition/index.ts'
import { partQuery } from '../routing/index.ts'
import { mergeLists, withMetadata } from './merge-lists.ts'
import type { MergedListOptions } from './merged-list.ts'

/**
 * Deletes a collection in several partitions, one after another in the order of their names, and answers with what all have deleted. When a partition does
 * not answer before the first deletion, nothing is deleted. Sending the request again deletes what is left.
 * @throws {StatusError} of the partition that has failed, naming it and those that have deleted their part.
 */
export async function deleteMerged(
  options: Omit<MergedListOptions, 'partsKey' | 'tokenKey'> & { readonly body: Uint8Array },
): Promise<TransportStreamResponse> {
  const { path, query, table, user, headers, body, signal } = options
  if (query.get('limit') || query.get('continue'))
    throw badRequest(`limit and continue are not supported for the deletion of ${table} in several partitions: use selectors`)
  const parts = [...options.parts].sort((a, b) => (a.partition < b.partition ? -1 : 1))
  await Promise.all(parts.map(({ connection }) => connection.progress(user, 0, [], signal)))
  await options.areAllParts()
  // A partition answers when its part is deleted. What it has deleted is read when all have answered.
  const answers: TransportStreamResponse[] = []
  try {
    for (const part of parts) {
      const fail = (error: StatusError) => stopped(error, part.partition, parts.slice(0, answers.length))
      const request = { method: 'DELETE', path: `${path}?${partQuery(query, part, table)}`, user, headers, body, signal }
      const answer = await part.connection.stream(request).catch(error => {
        throw error instanceof StatusError ? fail(error) : error
      })
      if (answer.status >= 300) {
        if (answers.length === 0) return answer
        throw fail(StatusError.fromStatus(await readStatus(answer)))
      }
      answers.push(answer)
    }
  } catch (error) {
    for (const answer of answers) discardBody(answer.body)
    throw error
  }
  const version = Math.max(...answers.map(({ headers: { 'x-oarlock-version': text } }) => Number(text ?? 0)))
  const headOf = (head: string) => withMetadata(head, metadata => ({ ...metadata, resourceVersion: String(version) }))
  const bodies = answers.map(answer => answer.body)
  return { ...(answers[0] as TransportStreamResponse), body: mergeLists(bodies, headOf) }
}

function stopped(error: StatusError, partition: string, deleted: readonly { readonly partition: string }[]): StatusError {
  if (deleted.length === 0) return error
  const names = deleted.map(each => JSON.stringify(each.partition)).join(', ')
  const message = `the deletion has stopped in partition ${JSON.stringify(partition)}: ${error.message}; deleted was what is selected in ${names}: retry to delete the rest`
  return new StatusError(error.reason, message, { code: error.code, cause: error, ...(error.details && { details: error.details }) })
}

async function readStatus({ status, body }: TransportStreamResponse): Promise<Status> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  const text = Buffer.concat(chunks).toString()
  try {
    const parsed = JSON.parse(text)
    if (isJsonObject(parsed)) return { ...(parsed as Status), code: status }
  } catch {
    // Of a proxy: its text is the message.
  }
  return { kind: 'Status', apiVersion: 'v1', code: status, reason: 'InternalError', message: text.slice(0, 200) } as Status
}
