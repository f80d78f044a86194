/** Engine pulumi: how long the CLI waits for its state to be durable, and what is left after kills at random points of an update. */
import { argument } from './faults/chain.ts'
import { measureJournal } from './pulumi/journal.ts'
import { killsProblem, measureKills } from './pulumi/kills.ts'
import { measureRecordedKills } from './pulumi/recorded-kills.ts'
import type { Bench } from './run.ts'

/** `--kills [N]` (default 20), `--seed S` (default: a random one, which is printed). */
export async function bench(args: string[]): Promise<Bench> {
  if (args.some(arg => /^--kills(=|$)/.test(arg))) return await kills(args)
  const about =
    'Journal entries of an update of 1,000 resources, 6.7 KB each, sent by a worker over TLS to the stores in another process, one request after another: until the answer that they are durable'
  return { title: 'Pulumi', about, rows: await measureJournal() }
}

/** With the real CLI where `PULUMI_BIN` names it, otherwise with what was recorded of it. */
async function kills(args: string[]): Promise<Bench> {
  const given = argument(args, 'kills', '20')
  const times = /^\d+$/.test(given) ? Number(given) : 20
  const seed = Number(argument(args, 'seed', String(Math.floor(Math.random() * 2 ** 31))))
  const problem = killsProblem()
  if (problem !== undefined) {
    return {
      title: `SIGKILL at ${times} random requests of recorded updates (${problem})`,
      about:
        '"lost": acknowledged resources and operations in flight that the next Run does not find in the state store; "unexpected": what it finds besides (bar of each, and of locks: 0)',
      ...(await measureRecordedKills(times, seed)),
    }
  }
  return {
    title: `SIGKILL at ${times} random points of an update with the real CLI`,
    about:
      '"created again": resources that a Run had created and that were not in flight when it was killed, by the ledger of the provider; "lost": deleted, or not in the state; "not deleted": replaced resources that remain; "overlapping": processes of the killed Run, and lines of them in the ledger, after the next Run has started (bar of each: 0)',
    ...(await measureKills(times, seed)),
  }
}
