import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** Plays the commands of one transcript. */
export type TranscriptPlayer = {
  /** @param options the words of the form `name=value`; @param words the others, without the command. */
  play(command: string, words: string[], options: Record<string, string>): void | Promise<void>
  /** The lines that were written since the last call. */
  takeLines(): string[]
  /** Checks what must hold at the end, and frees everything. */
  close?(): void | Promise<void>
}

/**
 * Plays a transcript: blocks of commands, each followed by `----` and the lines that the commands wrote, up to an empty line. Returns the text
 * with the lines of this run. Lines that start with # are comments.
 */
export async function playTranscript(text: string, player: TranscriptPlayer): Promise<string> {
  const played: string[] = []
  for (const block of text.trimEnd().split('\n\n')) {
    const lines = block.split('\n')
    const end = lines.indexOf('----')
    const commands = end < 0 ? lines : lines.slice(0, end)
    for (const line of commands) {
      if (line.startsWith('#') || line.trim() === '') continue
      const [command = '', ...rest] = line.split(' ').filter(Boolean)
      const options = Object.fromEntries(
        rest.filter(word => word.includes('=')).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
      )
      await player.play(
        command,
        rest.filter(word => !word.includes('=')),
        options,
      )
    }
    const isComment = commands.every(line => line.startsWith('#'))
    played.push([...commands, ...(isComment ? [] : ['----', ...player.takeLines()])].join('\n'))
  }
  await player.close?.()
  return `${played.join('\n\n')}\n`
}

/** One test for each transcript in a directory. OARLOCK_REWRITE=1 rewrites the files with the actual output: review the diff before you commit it. */
export function testTranscripts(directory: string, createPlayer: () => TranscriptPlayer): void {
  for (const file of readdirSync(directory).sort()) {
    test(file.replace('.txt', '').replaceAll('-', ' '), async () => {
      const path = join(directory, file)
      const text = readFileSync(path, 'utf8')
      const played = await playTranscript(text, createPlayer())
      if (process.env.OARLOCK_REWRITE === '1') writeFileSync(path, played)
      else assert.equal(played, text)
    })
  }
}

/**
 * Lines of a transcript with the time in seconds. Events that repeat, such as renewals, are counted: one line for all that have the same text,
 * until something else happens.
 */
export class TranscriptLines {
  readonly #nowMs: () => number
  readonly #lines: string[] = []
  readonly #routine = new Map<string, { firstMs: number; lastMs: number; count: number }>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(text: string): void {
    this.#flush()
    this.#lines.push(`${formatSeconds(this.#nowMs())} ${text}`)
  }

  addRoutine(text: string): void {
    const nowMs = this.#nowMs()
    const before = this.#routine.get(text)
    if (before) {
      before.lastMs = nowMs
      before.count++
    } else this.#routine.set(text, { firstMs: nowMs, lastMs: nowMs, count: 1 })
  }

  take(): string[] {
    this.#flush()
    return this.#lines.splice(0)
  }

  #flush(): void {
    for (const [text, { firstMs, lastMs, count }] of this.#routine)
      this.#lines.push(
        count === 1 ? `${formatSeconds(firstMs)} ${text}` : `${formatSeconds(firstMs)}–${formatSeconds(lastMs)} ${text}, ${count} times`,
      )
    this.#routine.clear()
  }
}

const formatSeconds = (ms: number): string => `${(ms / 1_000).toFixed(3)}s`
