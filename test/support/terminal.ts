import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { skipWithout } from './run-program.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

/** A value for `skip` of a test that needs a terminal. */
export const skipWithoutTerminal = skipWithout('python3')

/**
 * Copies between its own stdin and stdout and the terminal of a program, as a terminal emulator does, until
 * the program has ended.
 */
const terminalProgram = `
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
inputs = [fd, 0]
while True:
    ready, _, _ = select.select(inputs, [], [])
    if 0 in ready:
        data = os.read(0, 4096)
        if data: os.write(fd, data)
        else: inputs.remove(0)
    if fd in ready:
        try: data = os.read(fd, 4096)
        except OSError: data = b''
        if not data: break
        os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
`

const cursorMovement = new RegExp(`${String.fromCharCode(27)}\\[\\d*[A-Z]`, 'g')

/** Runs `oarlock` in a terminal. When its output matches `question`, `answer` is typed. Resolves with what the terminal showed. */
export async function oarlockInTerminal(
  args: readonly string[],
  { question, answer }: { question: RegExp; answer: string },
): Promise<{ code: number | null; text: string }> {
  const child = spawn('python3', ['-c', terminalProgram, process.execPath, launcher, ...args], {
    env: { ...process.env, TERM: 'xterm', NO_COLOR: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  let isAnswered = false
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece.replaceAll('\r\n', '\n').replaceAll(cursorMovement, '')
    if (isAnswered || !question.test(text)) return
    isAnswered = true
    child.stdin.write(answer)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  child.stdin.destroy()
  return { code, text }
}
