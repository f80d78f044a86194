/** A program whose output has a secret, or commands for the terminal that shows it. */
import { runOarlock } from '../../../test/support/run-program.ts'
import type { Attack } from '../attack.ts'
import { attackerNamespace } from '../target.ts'

const secretsInOutput: Attack = {
  name: 'secrets-in-logs',
  actor: 'stack author',
  promise: 'Secrets in output',
  async attempt(target, control) {
    const name = target.newName('masked')
    const value = 'correct-horse-battery-staple-91'
    await target.createSecret(name, { password: value, lines: 'first-line-of-the-key\nsecond-line-of-the-key\n' })
    const fill = (count: number) => `head -c ${count} /dev/zero | tr '\\0' x`
    const {
      log,
      run,
      name: stack,
    } = await target.runScript(
      `echo "$P"; printf '%s' "$P"; sleep 0.1; echo "$P$P"; ${[65_500, 65_530, 131_050].map(count => `${fill(count)}; printf '%s' "$P"; ${fill(20)}; echo`).join('; ')}
       printf 'corr'; sleep 0.2; echo 'ect-horse-battery-staple-91'; echo "$L"; echo "{\\"p\\":\\"$P\\"}"; echo "user:$P" | base64; printf '%s' "$P" | base64; echo "$P" >&2; echo "failed: $P" >&2; exit 1`,
      {
        env: [
          { name: 'P', secretKeyRef: { name, key: 'password' } },
          { name: 'L', secretKeyRef: { name, key: 'lines' } },
        ],
      },
    )
    control(log.includes('failed: ') && run?.status?.phase === 'Failed', 'the output of the Run is not in its log')
    const texts = {
      log,
      'the Run': JSON.stringify(run?.status),
      'the Stack': JSON.stringify((await target.author.get(stack)).status),
      'the log of oarlock up': target.output(),
    }
    const forms = [value, 'second-line-of-the-key', 'battery-staple', 'correct-horse', Buffer.from(value).toString('base64')]
    return Object.entries(texts).flatMap(([where, text]) => forms.filter(form => text.includes(form)).map(form => `${where} has ${form}`))
  },
}

const terminalEscapes: Attack = {
  name: 'terminal-escapes',
  slow: true,
  actor: 'stack author',
  promise: 'Secrets in output',
  async attempt(target, control) {
    const escapes =
      '\\033]0;owned\\007 \\033[2J \\033]52;c;b3duZWQ=\\007 \\302\\233 31m \\033P+q \\033[6n \\r overwritten \\b\\b \\342\\200\\256 rtl'
    const { name } = await target.runScript(`printf '${escapes}\\n'; printf 'failed ${escapes}\\n' >&2; exit 1`)
    const gained: string[] = []
    for (const args of [
      ['logs', `stack/${name}`],
      ['describe', 'stack', name],
      ['get', 'runs'],
      ['get', 'stack', name],
    ]) {
      const { text, code } = await runOarlock([...args, '-n', attackerNamespace, '--kubeconfig', target.kubeconfig])
      control(code === 0 && (args[0] !== 'logs' || text.includes('owned')), `oarlock ${args.join(' ')}: ${text.slice(0, 200)}`)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escapes
      const found = /[\u0007\u0008\u001b\u009b]/.exec(text)
      if (found) gained.push(`oarlock ${args[0]} prints ${JSON.stringify(found[0])}`)
    }
    return gained
  },
}

export const outputAttacks: readonly Attack[] = [secretsInOutput, terminalEscapes]
