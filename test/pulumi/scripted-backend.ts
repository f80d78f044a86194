import { PulumiBackendError } from '../../src/execution/pulumi-backend/index.ts'
import { MemoryBackend } from '../../src/execution/pulumi-backend/memory-backend.testing.ts'
import { parseJournalEntry, parseUntypedDeployment, replayJournal } from '../../src/stores/pulumi/index.ts'
import type { EndpointSettings, InitialStack } from './recording.ts'

/** The manifest of replayed states, so that a replayed conversation has equal answers. */
const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' }

/** A backend in memory that replays the journal, and refuses what the settings name. */
export function createScriptedBackend(settings: EndpointSettings, stacks: Readonly<Record<string, InitialStack>>): MemoryBackend {
  const backend = new MemoryBackend()
  for (const [key, { tags, deployment }] of Object.entries(stacks))
    backend.stacks.set(key, { tags: { ...tags }, versions: deployment === undefined ? [] : [Buffer.from(deployment)] })
  backend.replay = (base, entries) => {
    if (entries.length === 0) return base
    const deployment = base && parseUntypedDeployment(Buffer.from(base).toString())
    const replayed = replayJournal(
      deployment,
      entries.map(each => parseJournalEntry(each.value)),
      { manifest },
    )
    if (replayed.kind === 'unreadable') throw new Error(replayed.message)
    return Buffer.from(JSON.stringify(replayed.result))
  }
  const append = backend.appendJournalEntries.bind(backend)
  let appends = 0
  backend.appendJournalEntries = async (update, entries) => {
    if (entries.length > (settings.maxBatchEntries ?? Number.POSITIVE_INFINITY))
      throw new PulumiBackendError('TooLarge', `a request has at most ${settings.maxBatchEntries} entries`)
    if (++appends >= (settings.fencedFromAppend ?? Number.POSITIVE_INFINITY)) {
      backend.refused.push({ kind: 'journalEntries', entries })
      throw new PulumiBackendError('Fenced', 'Run web-4 has the lock of the stack')
    }
    await append(update, entries)
  }
  const { lockedBy } = settings
  if (lockedBy !== undefined)
    backend.before = call => {
      if (call === 'startUpdate') throw new PulumiBackendError('Conflict', `the stack is locked by user ${lockedBy}`)
    }
  return backend
}
