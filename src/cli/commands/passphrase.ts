import { readFileSync } from 'node:fs'
import { backups } from '../../app/index.ts'
import { usageError } from '../cli-error.ts'

/** The passphrase for new keys, from a file or asked for twice. Never an argument, which other users can see. */
export async function passphraseToEncrypt(file: string | undefined): Promise<string> {
  const { minPassphraseChars } = await backups()
  const passphrase = file === undefined ? await ask('passphrase for the keys: ') : passphraseIn(file)
  if (passphrase.length < minPassphraseChars)
    throw usageError(
      `the passphrase has ${passphrase.length} characters, at least ${minPassphraseChars} are required`,
      'choose a longer one',
    )
  if (file === undefined && (await ask('again: ')) !== passphrase) throw usageError('the passphrases differ', 'repeat the command')
  return passphrase
}

/** The passphrase of keys in a backup, from a file or, on a terminal, asked for. Undefined if there is none: other keys are used. */
export async function passphraseToDecrypt(file: string | undefined, backup: string): Promise<string | undefined> {
  if (file !== undefined) return passphraseIn(file)
  const { hasKeys } = await backups()
  if (!process.stdin.isTTY || !process.stderr.isTTY || !(await hasKeys(backup))) return undefined
  return (await ask('passphrase of the keys in the backup (empty: use other keys): ')) || undefined
}

/** The first line of a file. */
export function passphraseIn(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8').split(/\r?\n/, 1)[0]!
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`, 'name a file with the passphrase, or - for stdin')
  }
}

/** Asks on the terminal, without showing what is typed. */
async function ask(question: string): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw usageError('cannot ask for a passphrase: stdin is not a terminal', 'pass a file with --passphrase-file')
  const [{ createInterface }, { Writable }] = await Promise.all([import('node:readline/promises'), import('node:stream')])
  process.stderr.write(question)
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: hidden, terminal: true })
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
