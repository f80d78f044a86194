import { lstat, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { bootId, ifMissing } from '../../../kubernetes/util/index.ts'
import { touch } from '../../workspace/index.ts'
import { DependencyError, toStoreError } from '../dependency-error.ts'
import { manifestDigestOf, manifestText, readTree, stampsOf } from './store-files.ts'
import { manifestName, parseTreeRecord, producedName, recordName, sealName, type TreeRecord, treesName } from './tree-record.ts'

export type TreeSealsOptions = {
  /** A tree whose files were compared is used for this long without comparing them again. */
  recheckMs: number
  /** Replaces a file completely or not at all. */
  replaceFile(path: string, text: string): Promise<void>
}

/** Whether a stored tree is as it was added: its content is compared once after each start of the machine, then the stamps of its files are. */
export class TreeSeals {
  readonly #options: TreeSealsOptions

  constructor(options: TreeSealsOptions) {
    this.#options = options
  }

  /** The record of an intact tree, or what is wrong with it. `isThorough`: its content is compared in any case. */
  async verify(entry: string, digest: string, isThorough: boolean): Promise<TreeRecord | string> {
    const text = await readFile(join(entry, recordName), 'utf8').catch(() => '')
    const record = parseTreeRecord(text, digest)
    if (!record) return 'its record is missing or not valid'
    const seal = await readFile(join(entry, sealName), 'utf8').catch(() => '')
    if (!isThorough && (await this.#isSealed(entry, seal))) return record
    const problem = await findDamage(entry, record)
    if (problem !== undefined) return problem
    await this.seal(entry)
    return record
  }

  async seal(entry: string): Promise<void> {
    await this.#options.replaceFile(join(entry, sealName), await sealOf(entry))
  }

  /** Comparing takes a third of the time in which a Run gets a tree: 40 Runs that start together do it once. */
  async #isSealed(entry: string, seal: string): Promise<boolean> {
    const path = join(entry, sealName)
    const ageMs = Date.now() - ((await stat(path).catch(ifMissing(undefined)))?.mtimeMs ?? 0)
    if (seal.startsWith(`${bootId() ?? ''} `) && ageMs >= 0 && ageMs < this.#options.recheckMs) return true
    if (seal !== (await sealOf(entry))) return false
    await touch(path)
    return true
  }
}

/** Files may be damaged when the machine did not shut down: a seal is valid until it restarts. */
async function sealOf(entry: string): Promise<string> {
  const { size, mtimeMs } = await lstat(join(entry, manifestName)).catch(ifMissing({ size: 0, mtimeMs: 0 }))
  return `${bootId() ?? ''} ${size} ${mtimeMs} ${await stampsOf(entry, [treesName, producedName])}\n`
}

/** The first file that is not as it was stored. */
async function findDamage(entry: string, record: TreeRecord): Promise<string | undefined> {
  try {
    const stored = await readFile(join(entry, manifestName), 'utf8')
    if (manifestDigestOf(stored) !== record.manifestDigest) return 'its list of files has changed'
    const lines: string[] = []
    for (const index of record.trees.keys())
      lines.push(...(await readTree(join(entry, treesName, `${index}`), `${treesName}/${index}`)).lines)
    if (record.produced.length > 0) lines.push(...(await readTree(join(entry, producedName), producedName)).lines)
    if (manifestDigestOf(manifestText(lines)) === record.manifestDigest) return undefined
    const expected = new Set(stored.split('\n'))
    const actual = new Set(lines)
    const changed = lines.find(line => !expected.has(line)) ?? [...expected].find(line => line !== '' && !actual.has(line))
    return `it has changed: ${JSON.parse(/"(?:[^"\\]|\\.)*"/.exec(changed ?? '""')![0])}`
  } catch (error) {
    // Too many open files, for one, are no damage.
    if (toStoreError(error, entry) instanceof DependencyError) throw error
    return `it cannot be read: ${(error as Error).message}`
  }
}
