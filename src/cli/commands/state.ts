import { readFileSync, writeFileSync } from 'node:fs'
import { isEnded, oarlockCommand, phaseOf, runResource, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { formatDuration, parseDuration, rfc3339 } from '../../kubernetes/object/index.ts'
import { formatBytes } from '../../kubernetes/util/index.ts'
import { parseJournalEntry, readStateFile, recoverEntries, splitJournalBatch } from '../../stores/pulumi/index.ts'
import {
  describeHolder,
  lineageOf,
  type OrphanInfo,
  replacementConflict,
  summarizeState,
  type VersionInfo,
  withNewerSerial,
} from '../../stores/state/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { exportState, isForStackOnly } from '../state/export-state.ts'
import { createPassphraseSecrets, readPassphrase } from '../state/passphrase-secrets.ts'
import { recordImport } from '../state/record-import.ts'
import { StateApi, unlockHint } from '../state/state-api.ts'
import { mainKindsOf, stateKindOf } from '../state/state-kind.ts'
import { getStack } from '../targets.ts'
import { confirm, note, print } from '../terminal.ts'

type OutputOptions = { output?: 'json' | 'yaml' }
type ConfirmOptions = { yes?: boolean }
type VersionOptions = { version?: string }

/** `oarlock state list`: the Stacks of a namespace with a summary of their stored states, or inventories. */
export async function list(options: AccessOptions & OutputOptions): Promise<void> {
  await withClient(options, async client => {
    const namespace = options.allNamespaces ? undefined : namespaceOf(client, options)
    const { items } = await client.resource(stackResource).listAll({ namespace })
    const rows = []
    for (const stack of items.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)))) rows.push(await summaryOf(client, stack))
    if (options.output) return print(await serialize(rows, options.output))
    if (rows.length === 0) return note(namespace ? `no stacks in namespace ${namespace} (-A lists all namespaces)` : 'no stacks')
    const headers = ['STACK', 'KIND', 'VERSION', 'SIZE', 'WRITTEN BY', 'AGE', 'VERSIONS', 'ORPHANS', 'LOCK']
    const cells = rows.map(row => [
      options.allNamespaces ? `${row.namespace}/${row.stack}` : row.stack,
      ...(row.current
        ? [row.kind ?? '', `${row.current.version}`, formatBytes(row.current.size), row.current.author, ageOf(row.current)]
        : ['<none>', '', '', '', '']),
      `${row.versions}`,
      `${row.orphans}`,
      row.lock ?? '',
    ])
    for (const line of renderTable(headers, cells)) print(line)
  })
}

async function summaryOf(client: Client, stack: Stack) {
  const { name, namespace = 'default' } = stack.metadata
  const state = new StateApi(client, namespace, name)
  const [versions, orphans, lock] = await Promise.all([state.versions(), state.orphans(), state.currentLock()])
  const sorted = versions.toSorted((a, b) => b.version - a.version)
  const newest = sorted.find(({ kind }) => mainKindsOf(stack).includes(kind)) ?? sorted[0]
  const ofKind = versions.filter(({ kind }) => kind === newest?.kind)
  return {
    ...{ namespace, stack: name, kind: newest && kindNames[newest.kind], current: newest },
    ...{ versions: ofKind.length, orphans: orphans.length, lock: lock && describeHolder(lock.holder) },
  }
}

/** Engine `manifests` stores which objects it has applied, and no state. */
const kindNames = { terraform: 'state', inventory: 'inventory', pulumi: 'pulumi', 'pulumi-journal': 'journal' } as const

/** `oarlock state show STACK`: resources and outputs without sensitive values. */
export async function show(target: string, options: AccessOptions & OutputOptions & VersionOptions): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const number = wholeNumber(options.version)
    const content = await state.read(number)
    if (content === '') return note(`stack/${name} has no state`)
    const summary = parseState(content, name)
    if (options.output) return print(await serialize(summary, options.output))
    if (summary.format === 'unknown') {
      print(`state of stack/${name}: ${formatBytes(Buffer.byteLength(content))} of JSON with fields ${summary.keys.join(', ') || '<none>'}`)
      return note('hint: values are hidden because the format is unknown; "oarlock state pull" downloads the state')
    }
    if (summary.format === 'pulumi')
      print(`Pulumi stack ${summary.stack ?? '<none>'}, written by ${summary.engineVersion || 'an unknown version'}`)
    else print(`serial ${summary.serial}, lineage ${summary.lineage}, written by ${summary.engineVersion}`)
    for (const { type, address } of summary.pendingOperations ?? []) print(`pending: ${type} ${address}`)
    print('')
    if (summary.resources.length === 0) print('no resources')
    else
      for (const line of renderTable(
        ['RESOURCE', 'PROVIDER'],
        summary.resources.map(({ address, provider }) => [address, provider]),
      ))
        print(line)
    const outputs = Object.entries(summary.outputs).toSorted(([a], [b]) => a.localeCompare(b))
    if (outputs.length === 0) return
    print('')
    const cells = outputs.map(([output, { value, sensitive }]) => [output, sensitive ? String(value) : JSON.stringify(value)])
    for (const line of renderTable(['OUTPUT', 'VALUE'], cells)) print(line)
  })
}

/** `oarlock state versions STACK`: stored and orphaned versions, newest first. */
export async function versions(target: string, options: AccessOptions & OutputOptions): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const [accepted, orphans] = await Promise.all([state.versions(), state.orphans()])
    if (options.output) return print(await serialize({ versions: accepted, orphans }, options.output))
    if (accepted.length + orphans.length === 0) return note(`stack/${name} has no state`)
    const newest = new Set((['terraform', 'inventory', 'pulumi'] as const).map(kind => newestOf(accepted, kind)?.version))
    const rows = [
      ...accepted.map(version => {
        const journal = version.journalEntries !== undefined && `journal of ${formatEntries(version.journalEntries)}`
        const notes = [newest.has(version.version) && 'current', version.kind === 'inventory' && 'inventory', journal]
        return { ...version, note: notes.filter(Boolean).join(' ') }
      }),
      ...orphans.map(orphan => ({ ...orphan, note: `${orphan.kind === 'pulumi-journal' ? 'journal, ' : ''}orphan: ${orphan.reason}` })),
    ].sort((a, b) => b.version - a.version)
    const cells = rows.map(row => [
      `${row.version}`,
      `${row.epoch}`,
      row.author,
      row.size === 0 ? 'deleted' : formatBytes(row.size),
      ageOf(row),
      row.note,
    ])
    for (const line of renderTable(['VERSION', 'EPOCH', 'WRITTEN BY', 'SIZE', 'AGE', ''], cells)) print(line)
    if (orphans.some(isComplete)) note('hint: "oarlock state recover" makes an orphaned version the current one')
    for (const orphan of orphans.filter(orphan => !isComplete(orphan)))
      note(`hint: version ${orphan.version} is incomplete; ${repairHint(name, orphan)}`)
  })
}

/** `oarlock state rollback STACK --to N`: makes an older version the current one, as a new version. */
export async function rollback(target: string, options: AccessOptions & ConfirmOptions & { to: string }): Promise<void> {
  const number = wholeNumber(options.to)!
  await withState(target, options, async ({ stack, state, name, namespace }) => {
    const version = (await state.versions()).find(({ version }) => version === number)
    const kind = stateKindOf(stack)
    if (version && version.kind !== 'inventory' && version.kind !== kind)
      throw new CliError(`version ${number} is a state of ${version.kind}, and stack/${name} has engine ${stack.spec.engine}`, {
        exitCode: exitCodes.rejected,
      })
    if (version?.kind === 'inventory') throw new CliError(`version ${number} is an inventory of the engine, which cannot be rolled back`)
    const content = await state.read(number)
    if (content === '') throw new CliError(`version ${number} is a deletion of the state; roll back to another version`)
    await replaceState(state, { name, namespace }, `version ${number}`, content, options)
  })
}

/** `oarlock state recover STACK`: makes an orphaned version the current one. */
export async function recover(target: string, options: AccessOptions & ConfirmOptions & OutputOptions & VersionOptions): Promise<void> {
  const number = wholeNumber(options.version)
  await withState(target, options, async ({ state, name, namespace }) => {
    const orphans = await state.orphans()
    if (orphans.length === 0) return note(`stack/${name} has no orphaned versions`)
    const chosen = number === undefined ? (newestOrphan(orphans) ?? orphans[0]) : orphans.find(({ version }) => version === number)
    if (!chosen) {
      const known = orphans.map(({ version }) => version).join(', ')
      throw new CliError(`stack/${name} has no orphaned version ${number}`, {
        exitCode: exitCodes.notFound,
        hint: `orphaned versions: ${known}`,
      })
    }
    if (!isComplete(chosen)) {
      throw new CliError(`orphaned version ${chosen.version} of ${chosen.author} is incomplete: its write was interrupted`, {
        exitCode: exitCodes.rejected,
        hint: repairHint(name, chosen),
      })
    }
    const stored = await state.read(chosen.version, 'orphans')
    const current = await state.read()
    const content = chosen.kind === 'pulumi-journal' ? recoverJournal(stored, current, chosen.version) : stored
    note(
      `orphaned version ${chosen.version} of ${chosen.author} (epoch ${chosen.epoch}, ${ageOf(chosen)} old), rejected with reason ${chosen.reason}`,
    )
    for (const line of differences(content, current)) note(`  ${line}`)
    await replaceState(state, { name, namespace }, `orphaned version ${chosen.version}`, content, options)
  })
}

/** The current state with what the entries of a rejected journal have created. */
function recoverJournal(journal: string, current: string, version: number): string {
  const entries = splitJournalBatch(journal).map(({ value }) => parseJournalEntry(value))
  const { state, added, pending, skipped } = recoverEntries(current === '' ? undefined : readStateFile(current).state, entries)
  for (const reason of skipped) note(`  not recovered: ${reason}`)
  for (const urn of pending) note(`  pending: ${urn} was being created`)
  if (added.length + pending.length > 0) return JSON.stringify(state)
  throw new CliError(`the current state has all resources of orphaned version ${version}`, { exitCode: exitCodes.rejected })
}

function newestOrphan(orphans: readonly OrphanInfo[]): OrphanInfo | undefined {
  return orphans.filter(orphan => orphan.size > 0 && isComplete(orphan)).toSorted((a, b) => b.epoch - a.epoch || b.version - a.version)[0]
}

const isComplete = ({ reason }: OrphanInfo): boolean => reason !== 'Incomplete'

const repairHint = (name: string, { version }: OrphanInfo): string =>
  `download it with "oarlock state pull ${name} --version ${version} --orphan --to FILE", repair it, and upload it with "oarlock state push"`

/** Addresses that a recovery adds (+) and removes (-). */
function differences(content: string, current: string): string[] {
  const addresses = (text: string) => new Set(text === '' ? [] : summarizeState(text).resources.map(({ address }) => address))
  const [recovered, present] = [addresses(content), addresses(current)]
  const lines = [
    ...[...recovered.difference(present)].map(address => `+ ${address}`),
    ...[...present.difference(recovered)].map(address => `- ${address}`),
  ]
  if (lines.length === 0) return ['the resources are those of the current state']
  return lines.length > 40 ? [...lines.slice(0, 40), `… and ${lines.length - 40} more`] : lines
}

async function replaceState(
  state: StateApi,
  { name, namespace }: Pick<StateTarget, 'name' | 'namespace'>,
  what: string,
  content: string,
  options: ConfirmOptions,
): Promise<void> {
  await confirm(`make ${what} the current state of stack/${name}? The current state is kept as a version.`, options)
  const version = await state.write(`oarlock state: ${what}`, async () => withNewerSerial(content, await state.readReplaced()))
  print(`stack/${name}: ${what} is the current state, stored as version ${version}`)
  note(`hint: the resources may differ from it until "${oarlockCommand('run', { name, namespace })}"`)
}

/** `oarlock state lock STACK`: Runs wait with StateLocked until `unlock`. */
export async function lock(target: string, options: AccessOptions & { reason?: string }): Promise<void> {
  await withState(target, options, async ({ state, name, namespace }) => {
    const { ID } = await state.lock(options.reason ?? 'oarlock state lock')
    print(ID)
    note(`stack/${name} is locked: its Runs wait (StateLocked) until the lock is released`)
    note(`hint: release it with "${oarlockCommand('state unlock', { name, namespace })}"`)
  })
}

/** `oarlock state unlock STACK`: releases a user's lock. The lock of an active Run is never broken (invariant 4). */
export async function unlock(target: string, options: AccessOptions & ConfirmOptions & { id?: string }): Promise<void> {
  await withState(target, options, async ({ client, state, name, namespace }) => {
    const held = await state.currentLock()
    if (!held) return note(`stack/${name} is not locked`)
    const { holder, sinceMs } = held
    const description = `${describeHolder(holder)}, since ${formatDuration(Date.now() - sinceMs)}`
    if (holder.kind === 'Run') {
      const run = await client.resource(runResource).getOrUndefined(holder.runName, { namespace })
      if (run && !isEnded(run)) {
        throw new CliError(`the lock of stack/${name} is held by ${description} (phase ${phaseOf(run)})`, {
          exitCode: exitCodes.rejected,
          hint: unlockHint(held, `${namespace}/${name}`),
        })
      }
      await confirm(`release the lock of stack/${name}? It is held by ${description}, which has ended.`, options)
      // Locking breaks the abandoned lock if the store has proof (invariant 4); then it is released.
      await state.unlock((await state.lock('oarlock state unlock')).ID)
    } else {
      if (options.id !== undefined && options.id !== holder.id) {
        throw new CliError(`the lock of stack/${name} does not have the id ${options.id}`, {
          exitCode: exitCodes.rejected,
          hint: `it is held by ${description}`,
        })
      }
      await confirm(`release the lock of stack/${name}? It is held by ${description}.`, { yes: options.yes || options.id !== undefined })
      await state.unlock(holder.id)
    }
    print(`stack/${name} is unlocked`)
    note('a Run that waited for the lock starts within a few seconds')
  })
}

type PullOptions = VersionOptions & { to?: string; orphan?: boolean; showSecrets?: boolean; encryptWithPassphrase?: boolean }

/** `oarlock state pull STACK`: the raw state, or one of Pulumi that `pulumi stack import` of another backend reads. */
export async function pull(target: string, options: AccessOptions & PullOptions): Promise<void> {
  await withState(target, options, async ({ stack, state, name }) => {
    const number = wholeNumber(options.version)
    if (options.orphan && number === undefined)
      throw usageError('--orphan requires --version', '"oarlock state versions" lists the versions')
    const { showSecrets = false, encryptWithPassphrase = false } = options
    const isExport = showSecrets || encryptWithPassphrase
    if (showSecrets && encryptWithPassphrase) throw usageError('--show-secrets excludes --encrypt-with-passphrase', 'use one of them')
    if (isExport && stateKindOf(stack) !== 'pulumi') {
      const message = `stack/${name} has engine ${stack.spec.engine}; only states of Pulumi have encrypted secrets`
      throw usageError(message, 'use neither --show-secrets nor --encrypt-with-passphrase')
    }
    const passphrase = encryptWithPassphrase ? readPassphrase(process.env) : undefined
    const stored = await state.read(number, options.orphan ? 'orphans' : 'versions')
    if (stored === '') throw new CliError(`stack/${name} has no state`, { exitCode: exitCodes.notFound })
    const secrets = passphrase === undefined ? undefined : await createPassphraseSecrets(passphrase)
    const content = isExport ? await exportState(stored, values => state.decrypt(values), secrets) : stored
    if (showSecrets) note('warning: the secrets in this state are in plain text')
    else if (!isExport && isForStackOnly(stored))
      note('hint: its secrets are encrypted for this Stack; for another backend use --encrypt-with-passphrase or --show-secrets')
    if (options.to === undefined) return void process.stdout.write(content)
    // Readable by the owner only, because it contains all secret values. An existing file is not replaced.
    writeNew(options.to, content)
    print(`wrote the state of stack/${name} to ${options.to}`)
  })
}

/** `oarlock state push STACK FILE`: makes a file the current state. */
export async function push(target: string, file: string, options: AccessOptions & ConfirmOptions & { force?: boolean }): Promise<void> {
  const content = readInput(file)
  const summary = parseState(content, file)
  await withState(target, options, async ({ client, stack, state, name }) => {
    const kind = stateKindOf(stack)
    if (summary.format !== 'unknown' && summary.format !== kind) {
      const message = `${file} is a state of ${summary.format === 'pulumi' ? 'Pulumi' : 'Terraform or OpenTofu'}, and stack/${name} has engine ${stack.spec.engine}`
      throw new CliError(message, { exitCode: exitCodes.rejected })
    }
    const conflict = options.force ? undefined : replacementConflict(content, await state.readReplaced())
    if (conflict) {
      throw new CliError(`${file} cannot replace the state of stack/${name}: ${conflict}`, {
        exitCode: exitCodes.rejected,
        hint: 'pull the current state and edit it, or push with --force',
      })
    }
    await confirm(`replace the state of stack/${name} with ${file} (${summary.resources.length} resources)?`, options)
    const write = () =>
      state.write('oarlock state push', async () => {
        const newConflict = options.force ? undefined : replacementConflict(content, await state.readReplaced())
        if (newConflict)
          throw new CliError(`the state of stack/${name} changed in the meantime: ${newConflict}`, { exitCode: exitCodes.rejected })
        return content
      })
    const isApplied = stack.status?.applied !== undefined
    const version = isApplied ? await write() : await recordImport({ client, stack, state }, lineageOf(summary), write)
    print(`stack/${name}: ${file} is the current state, stored as version ${version}`)
  })
}

/** `oarlock state token STACK` */
export async function token(target: string, options: AccessOptions): Promise<void> {
  await withState(target, options, async ({ state }) => print(await state.token()))
}

/** `oarlock state rotate-token STACK` */
export async function rotateToken(
  target: string,
  options: AccessOptions & ConfirmOptions & OutputOptions & { grace: string },
): Promise<void> {
  const graceMs = parseDuration(options.grace)
  await withState(target, options, async ({ state, name }) => {
    const until = graceMs > 0 ? `stays valid for ${options.grace}` : 'stops working immediately'
    await confirm(`replace the token of stack/${name}? The current token ${until}.`, options)
    const { token: rotated, previousUntilMs, endedUntilMs } = await state.rotateToken(Math.floor(graceMs / 1_000))
    if (endedUntilMs !== undefined)
      note(`an earlier token of stack/${name}, valid until ${rfc3339(endedUntilMs)}, is invalid now: only the last one has a grace period`)
    if (options.output) return print(await serialize({ token: rotated, previousValidUntil: rfc3339(previousUntilMs) }, options.output))
    print(rotated)
    note(
      graceMs > 0
        ? `the old token of stack/${name} is valid until ${rfc3339(previousUntilMs)}`
        : `the old token of stack/${name} is invalid`,
    )
  })
}

export type StateTarget = { client: Client; stack: Stack; state: StateApi; name: string; namespace: string }

export async function withState(target: string, options: AccessOptions, work: (target: StateTarget) => Promise<void>): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace = 'default' } = stack.metadata
    if (stack.spec.state === 'External') {
      throw new CliError(`Oarlock does not store the state of stack/${name} (spec.state: External)`, {
        exitCode: exitCodes.rejected,
        hint: 'use the tools of that backend instead',
      })
    }
    await work({ client, stack, state: new StateApi(client, namespace, name, stateKindOf(stack)), name, namespace })
  })
}

function parseState(content: string, what: string): ReturnType<typeof summarizeState> {
  try {
    return summarizeState(content)
  } catch (error) {
    if (error instanceof SyntaxError) throw new CliError(`${what} is not a state: it must be one JSON object`)
    throw error
  }
}

export function readInput(file: string, hint = 'name a file, or - for stdin'): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`, hint)
  }
}

function writeNew(file: string, content: string): void {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${(error as Error).message}`, { hint: 'existing files are not replaced' })
  }
}

export function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw usageError(`version must be a whole number, got ${JSON.stringify(text)}`, '"oarlock state versions" lists the versions')
}

const formatEntries = (count: number) => `${count} ${count === 1 ? 'entry' : 'entries'}`
const newestOf = (all: readonly VersionInfo[], ofKind: VersionInfo['kind']) =>
  all.filter(({ kind }) => kind === ofKind).toSorted((a, b) => b.version - a.version)[0]
const keyOf = ({ metadata }: Stack) => `${metadata.namespace}/${metadata.name}`
const ageOf = ({ createdMs }: { createdMs: number }) => formatDuration(Date.now() - createdMs)
