/** Characters of a Stack's name that go into the names of its Runs. */
export const maxStackPart = 40

/** After this many Lost Runs in a row a Stack waits, as after failures, before it tries again. */
export const lostLimit = 5

/** A Run that waits is left alone for so long before a newer one replaces it, so that changes in quick succession make one. */
export const supersedeAfterMs = 1_000

/** A Stack whose engine is not installed looks again this often. */
export const engineRecheckMs = 5 * 60_000

/** A Run that is under way for less long is told of by its beginning and its end only: most short ones cost a Stack no further write. */
export const reportProgressAfterMs = 2_000

/** A Run's message is cut to this many characters where it is quoted in a condition or an event. */
export const quotedChars = 1_000

/** Held by a Stack from its first reconcile until what it made is destroyed or left on purpose. */
export const stackFinalizer = 'oarlock.dev/finalizer'
