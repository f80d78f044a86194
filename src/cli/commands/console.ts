import { consoleAccess, statusAccess } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { fetchFromProcess, readRecordedLine } from '../running-process.ts'
import { note, print } from '../terminal.ts'

/** `oarlock console`: prints a link that signs in once. Only who may read the data directory gets one. */
export async function printConsoleLink({ data }: { data?: string }): Promise<number> {
  const [{ consoleLink, consoleTokenPath }, { statusUrlPath }] = await Promise.all([consoleAccess(), statusAccess()])
  const dataDir = dataDirectory(data)
  const url = readRecordedLine(statusUrlPath(dataDir))
  print(consoleLink(url, await requestLink(url, readRecordedLine(consoleTokenPath(dataDir)))))
  note('it can be used once, within 10 minutes')
  return exitCodes.done
}

async function requestLink(url: string, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetchFromProcess('the console', url, '/console/api/links', { method: 'POST', headers })
  const { link, message } = (await response.json().catch(() => ({}))) as { link?: string; message?: string }
  if (link === undefined) throw new CliError(`the console at ${url} issues no link: ${message ?? `status ${response.status}`}`)
  return link
}
