/** Options for all requests of one resource client. */
export type ResourceClientOptions = {
  /**
   * False removes `metadata.managedFields` from responses and events: they are often half of an object and the slowest part to
   * parse, and only servers and tools that show field ownership need them. Default true.
   */
  managedFields?: boolean | undefined
}

export type SignalOption = { signal?: AbortSignal | undefined }
/** Without `namespace`: the client's default namespace, for a namespaced kind. */
export type GetOptions = SignalOption & { namespace?: string | undefined }
/** Without `namespace`: all namespaces. */
export type ListOptions = SignalOption & {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /** Selects a part by hash, if the server supports it: `metadata.shardInfo` of the list confirms it. */
  shardSelector?: string | undefined
  limit?: number | undefined
  continue?: string | undefined
  resourceVersion?: string | undefined
}
/** Without `fieldManager`: the client's. Without `namespace`: the object's, else the client's default. */
export type WriteOptions = SignalOption & {
  namespace?: string | undefined
  dryRun?: boolean | undefined
  fieldManager?: string | undefined
  /** How the server treats unknown fields. Default: that of the server, which drops them. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore' | undefined
}
export type PatchType = 'merge' | 'json' | 'strategic'
export type PatchOptions = WriteOptions & {
  type: PatchType
  subresource?: string | undefined
  /** Rejects the patch with Conflict if the object has changed since. */
  resourceVersion?: string | undefined
}
export type ApplyOptions = WriteOptions & {
  /** Takes over fields that another manager owns instead of failing with Conflict. */
  force?: boolean | undefined
  subresource?: string | undefined
}
export type DeleteOptions = SignalOption & {
  namespace?: string | undefined
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined
  gracePeriodSeconds?: number | undefined
  preconditions?: { uid?: string | undefined; resourceVersion?: string | undefined } | undefined
  dryRun?: boolean | undefined
}
export type DeleteCollectionOptions = SignalOption & {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined
}
export type WatchOptions = SignalOption & {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  shardSelector?: string | undefined
  /** Only events after this version; without it the server may start with existing objects as ADDED. */
  resourceVersion?: string | undefined
  resourceVersionMatch?: 'NotOlderThan' | undefined
  allowWatchBookmarks?: boolean | undefined
  sendInitialEvents?: boolean | undefined
  /** The server ends the watch after this time. */
  timeoutSeconds?: number | undefined
  /** Closes the connection after this time without data; 0, the default, disables it. */
  idleTimeoutMs?: number | undefined
  /** Called when the server has accepted the watch, before its first event. */
  onResponse?: (() => void) | undefined
}
