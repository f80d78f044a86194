import { annotations, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { rfc3339 } from '../../kubernetes/object/index.ts'

/** Before the state is stored: a Stack without a Run is otherwise deleted as one that has created nothing, and its state with it. */
export async function recordImport(client: Client, { metadata: { name, namespace }, status }: Stack): Promise<void> {
  if (status?.applied) return
  const recorded = { [annotations.importedState]: rfc3339(Date.now()) }
  await client.resource(stackResource).patch(name, { metadata: { annotations: recorded } }, { type: 'merge', namespace })
}
