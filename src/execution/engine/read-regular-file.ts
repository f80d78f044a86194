import { constants } from 'node:fs'
import { lstat, readFile } from 'node:fs/promises'

/** An engine may have replaced the file with a symlink that leaves its sandbox, or with a pipe that has no writer. */
const regularFileFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The content of a regular file that an engine wrote, or undefined if it does not exist. Does not follow symlinks. */
export async function readRegularFile(path: string): Promise<string | undefined> {
  return await ifPresent(readFile(path, { encoding: 'utf8', flag: regularFileFlags }))
}

/** Its size in bytes, or undefined if it does not exist. */
export async function fileSize(path: string): Promise<number | undefined> {
  return (await ifPresent(lstat(path)))?.size
}

async function ifPresent<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
