/** The number of objects of one resource. */
export type ResourceCount = { readonly group: string; readonly resource: string; readonly objects: number }

/** What the server holds and has done since it started. */
export type ServerStats = {
  objects: number
  objectBytes: number
  /** Of the recent changes that watches can resume from. */
  historyBytes: number
  watchers: number
  connections: number
  /** Acknowledged writes. */
  writes: number
  commits: number
  failedWrites: number
  queuedWrites: number
  lastCommitMs: number
  /** Leases whose last renewal is not on disk yet. */
  deferredWrites: number
  /** Requests that are being processed. */
  inFlight: number
  /** Requests that wait in the fair queue of their user. */
  waitingRequests: number
  /** Requests rejected with 429 because their user had too many. */
  rejectedRequests: number
  /** Events that the audit policy selected, and those of them that could not be written. */
  auditEvents: number
  lostAuditEvents: number
  rssBytes: number
}
