import { readFileSync, writeFileSync } from 'node:fs'
import { isEnded, runResource, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { formatDuration } from '../../kubernetes/object/index.ts'
import { formatBytes } from '../../kubernetes/util/index.ts'
import { describeHolder, type OrphanInfo, type VersionInfo } from '../../stores/state/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { confirm, note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { asNewest, outlineState, whyNotNewer } from '../state/outline-state.ts'
import { hintFor, StoredState } from '../state/stored-state.ts'
import { getStack } from '../targets.ts'

type Output = { output?: 'json' | 'yaml' }
type Yes = { yes?: boolean }
type Version = { version?: string }

/** `oarlock state list`: the Stacks of a namespace with what is kept of their state. */
export async function list(options: AccessOptions & Output): Promise<void> {
  await withClient(options, async client => {
    const namespace = options.allNamespaces ? undefined : namespaceOf(client, options)
    const { items } = await client.resource(stackResource).listAll({ namespace })
    const rows = []
    for (const stack of items.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)))) rows.push(await summaryOf(client, stack))
    if (options.output) return print(await serialize(rows, options.output))
    if (rows.length === 0) return note(namespace ? `no stacks in namespace ${namespace} (-A looks in all)` : 'no stacks')
    const headers = ['STACK', 'VERSION', 'SIZE', 'WRITTEN BY', 'AGE', 'KEPT', 'ORPHANS', 'LOCK']
    const cells = rows.map(row => [
      options.allNamespaces ? `${row.namespace}/${row.stack}` : row.stack,
      ...(row.current
        ? [`${row.current.version}`, formatBytes(row.current.size), row.current.author, ageOf(row.current)]
        : ['<none>', '', '', '']),
      `${row.versions}`,
      `${row.orphans}`,
      row.lock ?? '',
    ])
    for (const line of renderTable(headers, cells)) print(line)
  })
}

async function summaryOf(client: Client, { metadata: { name, namespace = 'default' } }: Stack) {
  const state = new StoredState(client, namespace, name)
  const [versions, orphans, lock] = await Promise.all([state.versions(), state.orphans(), state.lockNow()])
  const current = newestOf(versions)
  return { namespace, stack: name, current, versions: versions.length, orphans: orphans.length, lock: lock && describeHolder(lock.holder) }
}

/** `oarlock state show STACK`: resources and outputs; secret values stay out of sight. */
export async function show(target: string, options: AccessOptions & Output & Version): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const number = wholeNumber(options.version)
    const content = await state.read(number)
    if (content === '') return note(`stack/${name} has no state`)
    const outline = outlineOf(content, name)
    if (options.output) return print(await serialize(outline, options.output))
    if (outline.format === 'unknown') {
      print(`state of stack/${name}: ${formatBytes(Buffer.byteLength(content))} of JSON with ${outline.keys.join(', ') || 'nothing in it'}`)
      return note('hint: it is not Terraform’s, so what in it is secret is not known; "oarlock state pull" gives all of it')
    }
    print(`serial ${outline.serial}, lineage ${outline.lineage}, written by ${outline.engineVersion}`)
    print('')
    if (outline.resources.length === 0) print('no resources')
    else
      for (const line of renderTable(
        ['RESOURCE', 'PROVIDER'],
        outline.resources.map(({ address, provider }) => [address, provider]),
      ))
        print(line)
    const outputs = Object.entries(outline.outputs).toSorted(([a], [b]) => a.localeCompare(b))
    if (outputs.length === 0) return
    print('')
    const cells = outputs.map(([output, { value, sensitive }]) => [output, sensitive ? String(value) : JSON.stringify(value)])
    for (const line of renderTable(['OUTPUT', 'VALUE'], cells)) print(line)
  })
}

/** `oarlock state versions STACK`: what is kept, the newest first, with what was refused and kept aside. */
export async function versions(target: string, options: AccessOptions & Output): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const [kept, orphans] = await Promise.all([state.versions(), state.orphans()])
    if (options.output) return print(await serialize({ versions: kept, orphans }, options.output))
    if (kept.length + orphans.length === 0) return note(`stack/${name} has no state`)
    const newest = new Set([newestOf(kept)?.version])
    const rows = [
      ...kept.map(each => ({ ...each, note: newest.has(each.version) ? 'current' : each.kind === 'inventory' ? 'inventory' : '' })),
      ...orphans.map(each => ({ ...each, note: `orphan: ${each.reason}` })),
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
    if (orphans.some(isWhole)) note('hint: "oarlock state recover" makes an orphaned version the current one')
    for (const torn of orphans.filter(each => !isWhole(each))) note(`hint: version ${torn.version} was cut off; ${howToMend(name, torn)}`)
  })
}

/** `oarlock state rollback STACK --to N`: makes an older version the current one, as a new version. */
export async function rollback(target: string, options: AccessOptions & Yes & { to: string }): Promise<void> {
  const number = wholeNumber(options.to)!
  await withState(target, options, async ({ state, name }) => {
    const version = (await state.versions()).find(each => each.version === number)
    if (version?.kind === 'inventory')
      throw new CliError(`version ${number} is the engine's own record of what it made, which is not rolled back`)
    const content = await state.read(number)
    if (content === '') throw new CliError(`version ${number} says that the state was deleted; there is nothing to go back to`)
    await replaceBy(state, name, `version ${number}`, content, options)
  })
}

/** `oarlock state recover STACK`: what a Run wrote too late, or under a lock it had lost, becomes the current state. */
export async function recover(target: string, options: AccessOptions & Yes & Output & Version): Promise<void> {
  const number = wholeNumber(options.version)
  await withState(target, options, async ({ state, name }) => {
    const orphans = await state.orphans()
    if (orphans.length === 0) return note(`stack/${name} has no orphaned versions: nothing was refused`)
    const chosen = number === undefined ? (newestOrphan(orphans) ?? orphans[0]) : orphans.find(each => each.version === number)
    if (!chosen) {
      const known = orphans.map(({ version }) => version).join(', ')
      throw new CliError(`stack/${name} has no orphaned version ${number}`, { exitCode: exitCodes.notFound, hint: `it has ${known}` })
    }
    if (!isWhole(chosen)) {
      throw new CliError(
        `orphaned version ${chosen.version} of ${chosen.author} was cut off while it was written: it is not a whole state`,
        {
          exitCode: exitCodes.refused,
          hint: howToMend(name, chosen),
        },
      )
    }
    const content = await state.read(chosen.version, 'orphans')
    const current = await state.read()
    note(
      `orphaned version ${chosen.version} of ${chosen.author} (epoch ${chosen.epoch}, ${ageOf(chosen)} old), refused because of ${chosen.reason}`,
    )
    for (const line of differences(content, current)) note(`  ${line}`)
    await replaceBy(state, name, `orphaned version ${chosen.version}`, content, options)
  })
}

function newestOrphan(orphans: readonly OrphanInfo[]): OrphanInfo | undefined {
  return orphans.filter(each => each.size > 0 && isWhole(each)).toSorted((a, b) => b.epoch - a.epoch || b.version - a.version)[0]
}

const isWhole = ({ reason }: OrphanInfo): boolean => reason !== 'Incomplete'

const howToMend = (name: string, { version }: OrphanInfo): string =>
  `"oarlock state pull ${name} --version ${version} --orphan --to FILE" gives what there is of it; mended, "oarlock state push" takes it`

/** What recovering would bring and take, by address. */
function differences(content: string, current: string): string[] {
  const addresses = (text: string) => new Set(text === '' ? [] : outlineState(text).resources.map(({ address }) => address))
  const [then, now] = [addresses(content), addresses(current)]
  const only = (some: Set<string>, others: Set<string>) => [...some].filter(each => !others.has(each))
  const lines = [...only(then, now).map(each => `+ ${each}`), ...only(now, then).map(each => `- ${each}`)]
  if (lines.length === 0) return ['it has the same resources as the current state']
  return lines.length > 40 ? [...lines.slice(0, 40), `… and ${lines.length - 40} more`] : lines
}

async function replaceBy(state: StoredState, name: string, what: string, content: string, options: Yes): Promise<void> {
  await confirm(`make ${what} the current state of stack/${name}? The state that is replaced stays as a version.`, options)
  const version = await state.write(`oarlock state: ${what}`, async () => asNewest(content, await state.read()))
  print(`stack/${name}: ${what} is the current state now, as version ${version}`)
  note(`hint: "oarlock run ${name}" brings the world in line with it; until then they may differ`)
}

/** `oarlock state lock STACK`: holds Runs off until `unlock`. */
export async function lock(target: string, options: AccessOptions & { reason?: string }): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const { ID } = await state.lock(options.reason ?? 'oarlock state lock')
    print(ID)
    note(`stack/${name} is locked: its Runs wait until "oarlock state unlock ${name}"`)
  })
}

/** `oarlock state unlock STACK`: releases a person's lock. A Run's is never taken from it (invariant 4). */
export async function unlock(target: string, options: AccessOptions & Yes & { id?: string }): Promise<void> {
  await withState(target, options, async ({ client, state, name, namespace }) => {
    const held = await state.lockNow()
    if (!held) return note(`stack/${name} is not locked`)
    const { holder, sinceMs } = held
    const who = `${describeHolder(holder)}, since ${formatDuration(Date.now() - sinceMs)}`
    if (holder.kind === 'Run') {
      const run = await client.resource(runResource).getOrUndefined(holder.runName, { namespace })
      if (run && !isEnded(run)) {
        throw new CliError(`the lock of stack/${name} is held by ${who}, which is ${run.status?.phase}`, {
          exitCode: exitCodes.refused,
          hint: hintFor(held),
        })
      }
      await confirm(`release the lock of stack/${name}? It is held by ${who}, which has ended.`, options)
      // Taken over as the store allows it, over a dead body only, and let go.
      await state.unlock((await state.lock('oarlock state unlock')).ID)
    } else {
      if (options.id !== undefined && options.id !== holder.id) {
        throw new CliError(`the lock of stack/${name} has not the id ${options.id}`, {
          exitCode: exitCodes.refused,
          hint: `it is held by ${who}`,
        })
      }
      await confirm(`release the lock of stack/${name}? It is held by ${who}.`, { yes: options.yes || options.id !== undefined })
      await state.unlock(holder.id)
    }
    print(`stack/${name} is unlocked`)
  })
}

/** `oarlock state pull STACK`: the state as it is, secrets included. */
export async function pull(target: string, options: AccessOptions & Version & { to?: string; orphan?: boolean }): Promise<void> {
  await withState(target, options, async ({ state, name }) => {
    const number = wholeNumber(options.version)
    if (options.orphan && number === undefined) throw usageError('--orphan needs --version', '"oarlock state versions" lists them')
    const content = await state.read(number, options.orphan ? 'orphans' : 'versions')
    if (content === '') throw new CliError(`stack/${name} has no state`, { exitCode: exitCodes.notFound })
    if (options.to === undefined) return void process.stdout.write(content)
    // For the owner's eyes: it holds every secret value. A file that is there is not replaced.
    writeNew(options.to, content)
    print(`${options.to} has the state of stack/${name}`)
  })
}

/** `oarlock state push STACK FILE`: a file becomes the current state. */
export async function push(target: string, file: string, options: AccessOptions & Yes & { force?: boolean }): Promise<void> {
  const content = readInput(file)
  const outline = outlineOf(content, file)
  await withState(target, options, async ({ state, name }) => {
    const why = options.force ? undefined : whyNotNewer(content, await state.read())
    if (why) {
      throw new CliError(`${file} may not replace the state of stack/${name}: ${why}`, {
        exitCode: exitCodes.refused,
        hint: 'pull the current state and change that; --force pushes it all the same',
      })
    }
    await confirm(`replace the state of stack/${name} by ${file} (${outline.resources.length} resources)?`, options)
    const version = await state.write('oarlock state push', async () => {
      const now = options.force ? undefined : whyNotNewer(content, await state.read())
      if (now) throw new CliError(`the state of stack/${name} has moved on meanwhile: ${now}`, { exitCode: exitCodes.refused })
      return content
    })
    print(`stack/${name}: ${file} is the current state now, as version ${version}`)
  })
}

type Target = { client: Client; state: StoredState; name: string; namespace: string }

async function withState(target: string, options: AccessOptions, work: (found: Target) => Promise<void>): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace = 'default' } = stack.metadata
    if (stack.spec.state === 'External') {
      throw new CliError(`stack/${name} keeps its state in a backend of its own (spec.state: External)`, {
        exitCode: exitCodes.refused,
        hint: 'use the tools of that backend',
      })
    }
    await work({ client, state: new StoredState(client, namespace, name), name, namespace })
  })
}

function outlineOf(content: string, what: string): ReturnType<typeof outlineState> {
  try {
    return outlineState(content)
  } catch (error) {
    if (error instanceof SyntaxError) throw new CliError(`${what} is not a state: it must be one JSON object`)
    throw error
  }
}

function readInput(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`, 'name a file, or - for stdin')
  }
}

function writeNew(file: string, content: string): void {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${(error as Error).message}`, { hint: 'a file that is there is not replaced' })
  }
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw usageError(`a version is a whole number, got ${JSON.stringify(text)}`, '"oarlock state versions" lists them')
}

const newestOf = (all: readonly VersionInfo[]) =>
  all.filter(({ kind }) => kind === 'terraform').toSorted((a, b) => b.version - a.version)[0]
const keyOf = ({ metadata }: Stack) => `${metadata.namespace}/${metadata.name}`
const ageOf = ({ createdMs }: { createdMs: number }) => formatDuration(Date.now() - createdMs)
