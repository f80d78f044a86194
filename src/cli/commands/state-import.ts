import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { oarlockCommand, type Stack } from '../../api/index.ts'
import { type Detection, loadEngine } from '../../execution/engine/index.ts'
import { defaultStateLimits, lineageOf, summarizeState, withNewerSerial } from '../../stores/state/index.ts'
import type { AccessOptions } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { countOf } from '../count-of.ts'
import { exitCodes } from '../exit-codes.ts'
import { importProblem } from '../state/import-problem.ts'
import { preparePulumiImport, readPulumiBackend, readPulumiFile } from '../state/read-pulumi-import.ts'
import { isBackendUrl, readPulumiUrl } from '../state/read-pulumi-url.ts'
import { recordImport, rejectSecondImport } from '../state/record-import.ts'
import { stateKindOf } from '../state/state-kind.ts'
import { confirm, note, print } from '../terminal.ts'
import { readInput, withState } from './state.ts'

type Options = AccessOptions & { from: string; pulumiStack?: string; force?: boolean; yes?: boolean }

const maxListed = 40

/** `oarlock state import STACK --from FILE|DIR`: makes a state from elsewhere the first state of a Stack. */
export async function importState(target: string, options: Options): Promise<void> {
  await withState(target, options, async ({ client, stack, state, name, namespace }) => {
    const { content, lineage, secretsHint } = await readSource(stack, options)
    const { resources, serial } = summarizeState(content)
    if (resources.length === 0 && !options.force) {
      const hint = 'check the directory and its selected workspace; --force imports it anyway'
      throw rejected(`${options.from} cannot be imported: the state has no resources`, hint)
    }
    if (!options.force) await rejectSecondImport(client, stack, lineage)
    const conflict = (current: string) => (options.force ? undefined : existingState(current, `stack/${name}`))
    const readCurrent = () => (options.force ? state.readReplaced() : state.read())
    const existing = conflict(await readCurrent())
    if (existing) throw existing
    const count = countOf(resources.length, 'resource')
    for (const { address } of resources.slice(0, maxListed)) note(`  ${address}`)
    if (resources.length > maxListed) note(`  … and ${resources.length - maxListed} more`)
    if (secretsHint) note(`hint: ${secretsHint}`)
    const what = serial === undefined ? lineage : `serial ${serial}, lineage ${lineage}`
    await confirm(`import ${count} (${what}) into stack/${name} in namespace ${namespace}?`, options)
    const write = () =>
      state.write('oarlock state import', async () => {
        const current = await readCurrent()
        const newer = conflict(current)
        if (newer) throw newer
        return withNewerSerial(content, current)
      })
    const version = await recordImport({ client, stack, state }, lineage, write)
    print(`stack/${name}: imported ${count} from ${options.from}, stored as version ${version}`)
    const first = stack.spec.suspend ? `resume the Stack with "${oarlockCommand('resume', { name, namespace })}"; then ` : ''
    note(`hint: ${first}"${oarlockCommand('plan', { name, namespace })}" shows what would change: nothing, if state and files agree`)
  })
}

type Source = { content: string; lineage: string; secretsHint?: string | undefined }

async function readSource({ spec, metadata }: Stack, options: Options): Promise<Source> {
  const { force = false, pulumiStack } = options
  const isPulumi = stateKindOf({ spec }) === 'pulumi'
  if (isPulumi && isBackendUrl(options.from)) {
    const backend = { url: options.from, name: pulumiStack, stack: spec.pulumi?.stack ?? metadata.name }
    const { content } = preparePulumiImport(await readPulumiUrl(backend), options.from)
    return { content, lineage: lineageOf(summarizeState(content)) }
  }
  const from = options.from.startsWith('file://') ? fileURLToPath(options.from) : options.from
  const isDirectory = statSync(from, { throwIfNoEntry: false })?.isDirectory() === true
  if (pulumiStack !== undefined && !(isPulumi && isDirectory))
    throw usageError('--pulumi-stack is for backends of Pulumi', 'name one with --from, such as s3://BUCKET or a directory')
  if (isPulumi) {
    const { text, file } = isDirectory ? readPulumiBackend(resolve(from), force, pulumiStack) : { text: readPulumiFile(from), file: from }
    const { content, secretsHint } = preparePulumiImport(text, file)
    return { content, lineage: lineageOf(summarizeState(content)), secretsHint }
  }
  const { engine } = spec
  if (engine !== 'terraform' && engine !== 'opentofu')
    throw rejected(`stack/${metadata.name} has engine ${engine}; only states of terraform, opentofu and pulumi can be imported`)
  const content = isDirectory ? await pullState(resolve(from), engine) : readInput(from, 'name a file, a directory, or - for stdin')
  const problem = importProblem(content)
  if (problem) throw rejected(`${from} cannot be imported: ${problem.message}`, problem.hint)
  return { content, lineage: lineageOf(summarizeState(content)) }
}

const rejected = (message: string, hint?: string) => new CliError(message, { exitCode: exitCodes.rejected, ...(hint && { hint }) })

function existingState(current: string, stack: string): CliError | undefined {
  if (current === '') return undefined
  const { format, resources, serial } = summarizeState(current)
  // What a first Run leaves that created nothing.
  if (format !== 'unknown' && resources.length === 0) return undefined
  const count = countOf(resources.length, 'resource')
  const what = format === 'terraform' ? `serial ${serial}, ${count}` : format === 'pulumi' ? count : 'of another format'
  const hint = '--force replaces it and keeps it as a version; "oarlock state push" uploads a newer version of the same state'
  return rejected(`${stack} already has a state (${what})`, hint)
}

/** Reads the state of a root module as its user does, with their credentials and their selected workspace. */
async function pullState(directory: string, engine: 'terraform' | 'opentofu'): Promise<string> {
  const found: Detection = await (await loadEngine(engine)).detect(process.env)
  if (!found.found) throw new CliError(`${engine} was not found: ${found.reasons.join(', ')}`, { hint: found.howToInstall })
  const command = `${found.path} state pull`
  const { error, stdout, stderr } = await new Promise<{ error: Error | null; stdout: string; stderr: string }>(done => {
    const settings = { cwd: directory, maxBuffer: defaultStateLimits.maxBytes }
    execFile(found.path, ['state', 'pull'], settings, (error, stdout, stderr) => done({ error, stdout, stderr }))
  })
  if (error) {
    const hint = `run "init" in ${directory} first, or write the state to a file and import that file`
    throw new CliError(`"${command}" failed in ${directory}: ${stderr.trim() || error.message}`, { hint })
  }
  return stdout
}
