import { readFileSync } from 'node:fs'

/** The ids on this machine that sandboxed programs of a worker have which runs as root. */
export type SandboxAccount = { uid: number; gid: number }

/** The account that root uses, if it exists. It owns nothing else and needs no shell, no home and no password. */
export const sandboxAccountName = 'oarlock-sandbox'

/**
 * Root is root outside of a sandbox too, wherever the kernel compares ids only: in a user namespace that maps it to another id it could still
 * write `/proc/sys`. So its sandboxed programs get the ids of the account, or else the first of root's subordinate ids.
 * @throws {Error} with what to do, if there is neither.
 */
export function findSandboxAccount(read: (path: string) => string = readText): SandboxAccount {
  const account = entries(read('/etc/passwd')).find(([name]) => name === sandboxAccountName)
  const found = account
    ? { uid: parseId(account[2]), gid: parseId(account[3]) }
    : { uid: firstSubordinate(read('/etc/subuid')), gid: firstSubordinate(read('/etc/subgid')) }
  if (found.uid !== undefined && found.gid !== undefined) return { uid: found.uid, gid: found.gid }
  if (account) throw new Error(`account ${sandboxAccountName} must have a uid and a gid other than 0`)
  throw new Error(
    `the worker is root, and a sandboxed program must not be; run the worker as another user, or create an account for sandboxed programs: useradd --system --no-create-home --shell /usr/sbin/nologin ${sandboxAccountName}`,
  )
}

/** subuid(5): `name:first:count`, where name may be a uid. */
function firstSubordinate(text: string): number | undefined {
  const own = entries(text).find(([name, , count]) => (name === 'root' || name === '0') && Number(count) >= 1)
  return parseId(own?.[1])
}

const entries = (text: string): string[][] =>
  text
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => line.split(':'))

/** 65534 is what files of unmapped users show as, and 2^32-1 means none. */
function parseId(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return undefined
  const id = Number(text)
  return id > 0 && id < 2 ** 32 - 1 && id !== 65_534 ? id : undefined
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
