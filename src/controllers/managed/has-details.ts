export function hasDetails(change: { connectionDetails?: object | undefined } | undefined): boolean {
  return change?.connectionDetails !== undefined && Object.keys(change.connectionDetails).length > 0
}
