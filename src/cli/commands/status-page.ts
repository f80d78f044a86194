import { readFileSync } from 'node:fs'
import { parseAddress, statusAccess, urlOf } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'

const probeTimeoutMs = 5_000

/** `oarlock status-page`: prints the link that opens the status page. Its token is in the data directory, so only the user of that process can. */
export async function statusPage({ data, healthAddress }: { data?: string; healthAddress?: string }): Promise<number> {
  const { statusPageLink, statusTokenPath, statusUrlPath } = await statusAccess()
  const dataDir = dataDirectory(data)
  const url = healthAddress === undefined ? readLine(statusUrlPath(dataDir)) : urlOf('http', parseAddress(healthAddress))
  await probe(url)
  print(statusPageLink(url, readLine(statusTokenPath(dataDir))))
  return exitCodes.done
}

/** A page that does not respond gets no link: another process may use its address later, and must not get the token. */
async function probe(url: string): Promise<void> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(probeTimeoutMs) })
    await response.body?.cancel()
  } catch (error) {
    const { cause, name } = error as { cause?: NodeJS.ErrnoException; name: string }
    const reason = name === 'TimeoutError' ? `no response within ${probeTimeoutMs / 1_000} s` : (cause?.code ?? cause?.message ?? name)
    throw notRunning(`the status page at ${url} does not respond (${reason})`)
  }
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
