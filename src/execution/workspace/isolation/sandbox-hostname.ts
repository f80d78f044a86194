/** HOST_NAME_MAX of Linux. */
const maxLength = 64
export const defaultHostname = 'oarlock-run'

/**
 * The host name in the sandboxes of a Run, which programs record in the locks that they take elsewhere: a later Run of the same Stack recognizes
 * them. Names of this host would be those of other programs too.
 */
export function sandboxHostname(stackUid: string, epoch: number): string {
  const name = `oarlock-${stackUid}-${epoch}`
  return name.length <= maxLength ? name : defaultHostname
}

/** The epoch of the Run of this Stack in whose sandbox the host has this name; undefined for any other host. */
export function epochOfHostname(hostname: string, stackUid: string): number | undefined {
  const prefix = `oarlock-${stackUid}-`
  const epoch = hostname.startsWith(prefix) ? hostname.slice(prefix.length) : ''
  return /^[0-9]{1,10}$/.test(epoch) && sandboxHostname(stackUid, Number(epoch)) === hostname ? Number(epoch) : undefined
}
