import { copyFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import type { CommandControl } from './command-recording.ts'

/**
 * Makes a program `pulumi` of the recorded commands in a directory. What it reads is next to it, under names that a Run shows to its sandbox as those of
 * language hosts. @returns its path, for `PULUMI_BIN`.
 */
export async function installRecordedCli(directory: string, recording: string, controls: readonly CommandControl[] = []): Promise<string> {
  const program = join(directory, 'pulumi-recorded-cli.mjs')
  const bundling = await rolldown({ input: join(import.meta.dirname, 'recorded-cli.ts'), platform: 'node' })
  await bundling.write({ file: program, format: 'esm' })
  await bundling.close()
  const copy = join(directory, 'pulumi-recording.jsonl.zst')
  copyFileSync(recording, copy)
  return writeLauncher(directory, program, { recording: copy, controls })
}

/** A shell script `pulumi` that starts a program of Node with options as its first argument. */
export function writeLauncher(directory: string, program: string, options: object): string {
  const path = join(directory, 'pulumi')
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
  const words = [process.execPath, program, JSON.stringify(options)].map(quote).join(' ')
  writeFileSync(path, `#!/bin/sh\nPATH=${quote(dirname(process.execPath))}:$PATH exec ${words} "$@"\n`, { mode: 0o755 })
  return path
}
