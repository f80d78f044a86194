import { closeSync, openSync, readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'

export type SendCopyOptions = {
  response: ServerResponse
  /** The temporary file, which only its owner can read. */
  path: string
  /** Writes the file, which exists and is empty. */
  copy(path: string): Promise<void>
  contentType: string
  headers?: Readonly<Record<string, string>>
}

/** Responds with a file that `copy` writes. Its name is removed before it is sent, so its space is free when the response has ended. */
export async function sendCopy({ response, path, copy, contentType, headers }: SendCopyOptions): Promise<void> {
  removeCopies(path)
  closeSync(openSync(path, 'wx', 0o600))
  try {
    await copy(path)
    // Closed in any case: a client may disconnect before the stream takes it over, and one that is collected ends the process.
    await using file = await open(path)
    removeCopies(path)
    const { size } = await file.stat()
    response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': size, 'Cache-Control': 'no-store', ...headers })
    await pipeline(file.createReadStream(), response)
  } finally {
    removeCopies(path)
  }
}

/** Removes what a process that was killed during {@link sendCopy} has left. */
export function removeCopies(path: string): void {
  const directory = dirname(path)
  for (const name of readdirSync(directory)) if (name.startsWith(basename(path))) rmSync(join(directory, name), { force: true })
}
