/** What a handle does for all its requests. */
export type HandleOptions = {
  /**
   * False leaves `metadata.managedFields` out of what answers and events bring: they are often half of an object and the slowest
   * part to read, and only servers and tools that show who owns what need them. Default true.
   */
  managedFields?: boolean | undefined
}

export type Signal = { signal?: AbortSignal | undefined }
/** Without `namespace`: the client's default namespace for a namespaced kind. */
export type GetOptions = Signal & { namespace?: string | undefined }
/** Without `namespace`: all namespaces. */
export type ListOptions = Signal & {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /** A part by hash, where the server can: `metadata.shardInfo` of the list says that it did. */
  shardSelector?: string | undefined
  limit?: number | undefined
  continue?: string | undefined
  resourceVersion?: string | undefined
}
/** Without `fieldManager`: the client's. Without `namespace`: the object's, else the client's default. */
export type WriteOptions = Signal & {
  namespace?: string | undefined
  dryRun?: boolean | undefined
  fieldManager?: string | undefined
  /** What the server does with fields that the kind does not have. Default: the server's, which is to leave them out. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore' | undefined
}
export type PatchType = 'merge' | 'json' | 'strategic'
export type PatchOptions = WriteOptions & {
  type: PatchType
  subresource?: string | undefined
  /** Refuses the patch with Conflict if the object has moved on. */
  resourceVersion?: string | undefined
}
export type ApplyOptions = WriteOptions & {
  /** Takes over fields that another manager owns instead of failing with Conflict. */
  force?: boolean | undefined
  subresource?: string | undefined
}
export type DeleteOptions = Signal & {
  namespace?: string | undefined
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined
  gracePeriodSeconds?: number | undefined
  preconditions?: { uid?: string | undefined; resourceVersion?: string | undefined } | undefined
  dryRun?: boolean | undefined
}
export type WatchOptions = Signal & {
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  shardSelector?: string | undefined
  /** Only events after this version; without it the server may start with the present objects as ADDED. */
  resourceVersion?: string | undefined
  resourceVersionMatch?: 'NotOlderThan' | undefined
  allowWatchBookmarks?: boolean | undefined
  sendInitialEvents?: boolean | undefined
  /** The server ends the watch after this long. */
  timeoutSeconds?: number | undefined
  /** Gives up when nothing comes for this long; 0, the default, waits for ever. */
  idleTimeoutMs?: number | undefined
}
