import {
  type DestructionFacts,
  destroyBlocker,
  destructionBlockers,
  expectedStateVersion,
  formatBlocker,
  type KnownState,
  reportsStateError,
  type Stack,
} from '../../api/index.ts'
import { dependentsOf, isNamespaceTerminating } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { describeHolder, knownStateOf } from '../../stores/state/index.ts'
import type { Projections } from '../projection/index.ts'
import { StoredState } from './stack/stored-state.ts'
import type { Visibility } from './visibility.ts'

/** What the rules of `api/stack-blockers.ts` are applied to, as far as the user may know it. */
export type BlockerSources = { readonly client: Client; readonly visibility: Visibility; readonly projections: Projections }

/** What the stores have of a state whose error the status reports: it may have been repaired since. Undefined if there is none to look for. */
export async function readReportedState(client: Client, stack: Stack): Promise<KnownState | undefined> {
  return reportsStateError(stack) ? await readState(storedState(client, stack), stack) : undefined
}

/** Everything that blocks the destruction of a Stack, as `oarlock destroy` reports it before it plans. */
export async function readDestructionBlockers(sources: BlockerSources, stack: Stack): Promise<string[]> {
  if (stack.metadata.deletionTimestamp === undefined)
    return destructionBlockers(stack, await readDestructionFacts(sources, stack)).map(formatBlocker)
  const blocker = destroyBlocker(stack)
  return blocker ? [formatBlocker(blocker)] : []
}

async function readDestructionFacts({ client, visibility, projections }: BlockerSources, stack: Stack): Promise<DestructionFacts> {
  const { namespace = 'default' } = stack.metadata
  const stored = storedState(client, stack)
  const [visible, terminating, state, lock] = await Promise.all([
    visibility.of('stacks', () => [namespace]),
    isNamespaceTerminating(client, namespace),
    readState(stored, stack),
    stored.lock().catch(() => undefined),
  ])
  const maySeeOthers = visible.all || visible.namespaces.has(namespace)
  return {
    dependents: maySeeOthers ? dependentsOf(stack, projections.stacksIn(namespace), new Set()) : [],
    isNamespaceTerminating: terminating,
    state,
    lockedBy: lock?.holder.kind === 'User' ? describeHolder(lock.holder) : undefined,
  }
}

const storedState = (client: Client, { metadata: { name, namespace = 'default' } }: Stack) => new StoredState({ client, namespace, name })

/** Undefined if the user may not read it. */
async function readState(stored: StoredState, stack: Stack): Promise<KnownState | undefined> {
  const versions = await stored.versions().catch(() => undefined)
  return versions && knownStateOf(expectedStateVersion(stack), versions)
}
