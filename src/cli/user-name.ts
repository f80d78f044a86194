import { userInfo } from 'node:os'

/** The name of the user who runs a command, for people: in a container the user often has a number only. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}
