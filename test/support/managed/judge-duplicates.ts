/** Which duplicates the guarantee of a lock permits: a paused process may still finish the calls that it had begun. */
import type { Creation } from './cloud-server.ts'

/** A time during which a replica could not act. */
export type Pause = { readonly member: string; readonly fromMs: number; readonly toMs: number }

export type Duplicates = {
  /** Creations beyond the first of a name. */
  readonly total: number
  /** Of these: caused by the one call of a resource that a replica had begun before its pause, and that arrived after the pause began. */
  readonly begunBefore: number
  /** The other ones: each is a failure. */
  readonly forbidden: readonly string[]
}

/** `creations` by name, each in the order of arrival. A replica has at most `maxConcurrent` calls when it is paused. */
export function judgeDuplicates(
  creations: ReadonlyMap<string, readonly Creation[]>,
  pauses: readonly Pause[],
  maxConcurrent: number,
): Duplicates {
  const pauseOf = ({ member, begunMs, receivedMs }: Creation) =>
    pauses.find(pause => pause.member === member && begunMs <= pause.fromMs && receivedMs >= pause.fromMs)
  const begunBefore = new Map<Pause, number>()
  const forbidden: string[] = []
  let total = 0
  for (const [name, ofName] of creations) {
    total += ofName.length - 1
    const late = ofName.find(pauseOf)
    const pause = late && pauseOf(late)
    let permitted = 0
    // Another replica could not see it: it had looked before this one arrived.
    if (
      pause &&
      ofName.some(({ member, observedMs }) => member !== late.member && observedMs !== undefined && observedMs < late.receivedMs)
    ) {
      const count = (begunBefore.get(pause) ?? 0) + 1
      begunBefore.set(pause, count)
      if (count <= maxConcurrent) permitted = 1
    }
    for (let extra = permitted; extra < ofName.length - 1; extra++) forbidden.push(name)
  }
  return { total, begunBefore: [...begunBefore.values()].reduce((sum, count) => sum + count, 0), forbidden }
}
