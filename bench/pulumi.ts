/** Engine pulumi: how long the CLI waits for its state to be durable. */
import { measureJournal } from './pulumi/journal.ts'
import type { Bench } from './run.ts'

export async function bench(): Promise<Bench> {
  const about =
    'Journal entries of an update of 1,000 resources, 6.7 KB each, sent by a worker over TLS to the stores in another process, one request after another: until the answer that they are durable'
  return { title: 'Pulumi', about, rows: await measureJournal() }
}
