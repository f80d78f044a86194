import { isReason, type KubeObject } from '../object/index.ts'
import type { ResourceClient } from './resource-client.ts'

const maxAttempts = 5

/**
 * A merge patch of an object as long as `accepts` holds, whatever else of the object changes in the meantime, such as its status: reads it, and
 * patches exactly the version that was read; repeated if another one is stored in between.
 * @returns undefined if `accepts` does not hold; nothing is changed then.
 * @throws what `accepts` throws; {StatusError} NotFound, or Conflict if the object changes faster than it is read.
 */
export async function patchIf<Body>(
  resource: ResourceClient<Body>,
  { name, namespace }: { readonly name: string; readonly namespace?: string | undefined },
  accepts: (object: KubeObject<Body>) => boolean | Promise<boolean>,
  patchOf: (object: KubeObject<Body>) => object,
): Promise<KubeObject<Body> | undefined> {
  for (let attempt = 1; ; attempt++) {
    const object = await resource.get(name, { namespace })
    if (!(await accepts(object))) return undefined
    const { resourceVersion } = object.metadata
    try {
      return await resource.patch(name, patchOf(object), { type: 'merge', namespace, resourceVersion })
    } catch (error) {
      if (attempt === maxAttempts || !isReason(error, 'Conflict')) throw error
    }
  }
}
