const alphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** The prefix, shortened to 58 characters, and five random ones: the name of an object with generateName. */
export function randomName(prefix: string): string {
  // Loaded here: a worker must not load it before its first request.
  const { randomInt } = process.getBuiltinModule('node:crypto')
  let suffix = ''
  for (let i = 0; i < 5; i++) suffix += alphabet[randomInt(alphabet.length)]
  return prefix.slice(0, 58) + suffix
}
