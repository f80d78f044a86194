import { readFileSync } from 'node:fs'
import { parseAddress, statusAccess, urlOf } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'

/** `oarlock status-page`: prints the link that opens the status page. Its token is in the data directory, so only the user of that process can. */
export async function statusPage(options: { data?: string; healthAddress: string }): Promise<number> {
  const { statusPageLink, statusTokenPath } = await statusAccess()
  const path = statusTokenPath(dataDirectory(options.data))
  print(statusPageLink(urlOf('http', parseAddress(options.healthAddress)), readToken(path)))
  return exitCodes.done
}

function readToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CliError(`failed to read ${path} (${code})`, { hint: 'start "oarlock up" first, or name its data directory with --data' })
  }
}
