/** Paths of fields as users write them: `data.key`, `metadata.annotations["example.com/a"]`, `spec.containers[0].image`. */
import { isJsonObject } from '../../../src/kubernetes/index.ts'

type Step = string | number

/** @throws {TypeError} for a path that cannot be read. */
export function parseFieldPath(path: string): readonly Step[] {
  const steps: Step[] = []
  const pattern = /\.?([^.[\]"]+)|\[(\d+)\]|\["([^"]+)"\]/gy
  while (pattern.lastIndex < path.length) {
    const match = pattern.exec(path)
    if (!match) break
    const [, name, index, quoted] = match
    steps.push(index === undefined ? ((name ?? quoted) as string) : Number(index))
    if (pattern.lastIndex === path.length) return steps
  }
  throw new TypeError(
    `the field path ${JSON.stringify(path)} cannot be read: write it like data.key, metadata.annotations["example.com/a"] or spec.containers[0].image`,
  )
}

export function readField(object: unknown, path: string): unknown {
  let value = object
  for (const step of parseFieldPath(path)) {
    if (typeof step === 'number') value = Array.isArray(value) ? value[step] : undefined
    else value = isJsonObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
  }
  return value
}

/** A copy with the field set; objects on the way are created. @throws {TypeError} if the path goes through a value that is no object or list. */
export function withField(object: unknown, path: string, value: unknown): unknown {
  const set = (target: unknown, steps: readonly Step[]): unknown => {
    const [step, ...rest] = steps
    if (step === undefined) return value
    if (typeof step === 'number') {
      if (!Array.isArray(target) || step > target.length)
        throw new TypeError(`toFieldPath ${path}: the manifest has no list with an item [${step}]`)
      return Object.assign([...target], { [step]: set(target[step], rest) })
    }
    if (target !== undefined && !isJsonObject(target))
      throw new TypeError(`toFieldPath ${path}: the manifest has a value before .${step} that is no object`)
    if (step === '__proto__') throw new TypeError(`toFieldPath ${path}: __proto__ is no name of a field`)
    return { ...target, [step]: set(target?.[step], rest) }
  }
  return set(object, parseFieldPath(path))
}
