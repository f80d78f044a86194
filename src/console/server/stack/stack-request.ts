import type { Stack } from '../../../api/index.ts'
import { stackResource } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import type { KubeObject, Resource } from '../../../kubernetes/object/index.ts'
import type { Projections } from '../../projection/index.ts'
import type { Rights } from '../available-actions.ts'
import type { CallTasks } from '../offload/index.ts'
import type { Visibility } from '../visibility.ts'

/** A request for a part of the page of one Stack. */
export type StackRequest = {
  readonly namespace: string
  readonly name: string
  /** What follows the section in the path. */
  readonly rest: readonly string[]
  readonly query: URLSearchParams
  body(): Promise<object>
  /** With exactly the rights of the user. */
  readonly client: Client
  /** Of the user, on this Stack. */
  readonly rights: Rights
  readonly visibility: Visibility
  readonly projections: Projections
  readonly tasks: CallTasks
}

/** Read with the rights of the user: who may not get the Stack sees no part of it. @throws {StatusError} */
export async function readStack({ client, namespace, name }: Pick<StackRequest, 'client' | 'namespace' | 'name'>): Promise<Stack> {
  return (await client.resource(stackResource as Resource<Pick<Stack, 'spec' | 'status'>>).get(name, { namespace })) as KubeObject<
    Pick<Stack, 'spec' | 'status'>
  > as Stack
}
