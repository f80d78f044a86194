import { readFileSync } from 'node:fs'
import { consoleAccess, statusAccess } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'

const timeoutMs = 5_000

/** `oarlock console`: prints a link that signs in once. Only who may read the data directory gets one. */
export async function printConsoleLink({ data }: { data?: string }): Promise<number> {
  const [{ consoleLink, consoleTokenPath }, { statusUrlPath }] = await Promise.all([consoleAccess(), statusAccess()])
  const dataDir = dataDirectory(data)
  const url = readLine(statusUrlPath(dataDir))
  print(consoleLink(url, await requestLink(url, readLine(consoleTokenPath(dataDir)))))
  note('it can be used once, within 10 minutes')
  return exitCodes.done
}

async function requestLink(url: string, token: string): Promise<string> {
  let response: Response
  try {
    const headers = { authorization: `Bearer ${token}` }
    response = await fetch(`${url}/console/api/links`, { method: 'POST', headers, signal: AbortSignal.timeout(timeoutMs) })
  } catch (error) {
    const { cause, name } = error as { cause?: NodeJS.ErrnoException; name: string }
    const reason = name === 'TimeoutError' ? `no response within ${timeoutMs / 1_000} s` : (cause?.code ?? cause?.message ?? name)
    throw notRunning(`the console at ${url} does not respond (${reason})`)
  }
  if (response.status !== 201) throw new CliError(`the console at ${url} rejects the token of the data directory (${response.status})`)
  return ((await response.json()) as { link: string }).link
}

function readLine(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw notRunning(`failed to read ${path} (${(error as NodeJS.ErrnoException).code})`)
  }
}

const notRunning = (message: string) =>
  new CliError(message, {
    exitCode: exitCodes.unreachable,
    hint: 'start "oarlock up", or name the data directory of a running process with --data',
  })
