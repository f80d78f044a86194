import { labelErrors } from '../kubernetes/object/index.ts'
import { labels } from './names.ts'

/**
 * Parses `key=value` words.
 * @param name of the setting, for the message. @throws {TypeError} if a word is no pair.
 */
export function parsePairs(name: string, words: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    words.filter(Boolean).map(word => {
      const at = word.indexOf('=')
      if (at <= 0) throw new TypeError(`${name} contains ${JSON.stringify(word)}; it must be key=value pairs separated by commas`)
      return [word.slice(0, at).trim(), word.slice(at + 1).trim()]
    }),
  )
}

/** Checks the labels that a worker is configured with. @throws {TypeError} naming the label and what is allowed. */
export function checkWorkerLabels(own: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (own[labels.pool] !== undefined) throw new TypeError(`label ${labels.pool} must not be set; use --pool`)
  const [error] = labelErrors(own, 'labels')
  if (error) throw new TypeError(`label ${error.field}: ${error.message}`)
  return own
}
