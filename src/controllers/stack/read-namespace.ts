import { approvalPolicyOf, requiresApproval, type Stack } from '../../api/index.ts'
import { type Client, namespaceResource } from '../../kubernetes/client/index.ts'

/** Undefined if the user may not read it: then it decides nothing. */
const readNamespace = (client: Client, name: string) =>
  client
    .resource(namespaceResource)
    .getOrUndefined(name)
    .catch(() => undefined)

/** Whether the plans of a Stack need an approval, as far as the user may know. */
export async function readRequiresApproval(client: Client, { metadata, spec }: Pick<Stack, 'metadata' | 'spec'>): Promise<boolean> {
  const namespace = await readNamespace(client, metadata.namespace ?? 'default')
  return requiresApproval(spec, approvalPolicyOf(namespace?.metadata.labels))
}

/** Whether the namespace is being deleted, and accepts no new Run, as far as the user may know. */
export async function isNamespaceTerminating(client: Client, name: string): Promise<boolean> {
  return (await readNamespace(client, name))?.metadata.deletionTimestamp !== undefined
}
