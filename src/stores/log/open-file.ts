import { type FileHandle, open } from 'node:fs/promises'

/** More than the threads that read and write files, and few enough for a process that may open few. */
const maxOpenFiles = 32

let openFiles = 0
const waiting: (() => void)[] = []

/** Calls `work` with an open file and closes it. Further files wait (invariant 10): each concurrent request would otherwise have one open. */
export async function withOpenFile<Value>(path: string, flags: string, work: (file: FileHandle) => Promise<Value>): Promise<Value> {
  if (openFiles >= maxOpenFiles) await new Promise<void>(resolve => waiting.push(resolve))
  else openFiles++
  try {
    const file = await open(path, flags, 0o600)
    try {
      return await work(file)
    } finally {
      await file.close()
    }
  } finally {
    const next = waiting.shift()
    // The next one takes the place of this one.
    if (next) next()
    else openFiles--
  }
}
