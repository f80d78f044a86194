import { parseAddress, statusAccess, urlOf } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { fetchFromProcess, readRecordedLine } from '../running-process.ts'

/** `oarlock status-page`: prints the link that opens the status page. Its token is in the data directory, so only the user of that process can. */
export async function statusPage({ data, healthAddress }: { data?: string; healthAddress?: string }): Promise<number> {
  const { statusPageLink, statusTokenPath, statusUrlPath } = await statusAccess()
  const dataDir = dataDirectory(data)
  const url = healthAddress === undefined ? readRecordedLine(statusUrlPath(dataDir)) : urlOf('http', parseAddress(healthAddress))
  // A page that does not respond gets no link: another process may use its address later, and must not get the token.
  const response = await fetchFromProcess('the status page', url, '/healthz')
  await response.body?.cancel()
  print(statusPageLink(url, readRecordedLine(statusTokenPath(dataDir))))
  return exitCodes.done
}
